// completion: scripts for three shells, written from the parser's own words.
//
// Each script does the same: it finds the verbs before the cursor (`at`), and offers the words that may stand there.
#include <memory>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "../shell_words.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// The text in single quotes, for bash and zsh; fish reads single quotes in the same way, except a quote inside them.
std::string shell_quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }
std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

// The paths below the top level as patterns: "' info'|' ls'".
std::string paths(const std::vector<CommandWords>& commands, std::string_view separator) {
  std::vector<std::string> quoted_paths;
  for (const CommandWords& command : commands) {
    if (!command.path.empty()) quoted_paths.push_back(shell_quoted(command.path));
  }
  return fmt::format("{}", fmt::join(quoted_paths, separator));
}

std::string names(const std::vector<OptionWords>& options) {
  std::string text;
  for (const OptionWords& option : options) {
    text += " --" + option.long_name;
    if (!option.short_name.empty()) text += " -" + option.short_name;
  }
  return text;
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string values, places;
  for (const CommandWords& command : commands) {
    for (const OptionWords& option : command.options) {
      if (!option.choices.empty()) {
        // The options of the top level may stand after any verb.
        const std::string place = command.path.empty() ? "*" : "";
        values += fmt::format("    {}{}) COMPREPLY=($(compgen -W {} -- \"$cur\")); return ;;\n", place,
                              shell_quoted(command.path + " --" + option.long_name),
                              shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      }
    }
    std::string words;
    for (const Word& word : command.words) words += (words.empty() ? "" : " ") + word.text;
    const std::string everywhere = command.path.empty() ? "" : names(commands[0].options);
    places += fmt::format("    {}) words={} options={} ;;\n", shell_quoted(command.path), shell_quoted(words),
                          shell_quoted((names(command.options) + everywhere).substr(1)));
  }
  return fmt::format(R"(# bash completion for ballast; load it with: source <(ballast completion bash)
_ballast() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at='' words options i
  [[ $prev == = ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}
  [[ $cur == = ]] && prev=${{COMP_WORDS[COMP_CWORD-1]}} cur=''
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${{COMP_WORDS[i]}}" in
      {}) at+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$at $prev" in
{}  esac
  case $at in
{}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -o bashdefault -o default -F _ballast ballast
)",
                     paths(commands, "|"), values, places);
}

// An option for zsh's _arguments: "'--include=[only tensors ...]:GLOB:'".
std::string zsh_option(const OptionWords& option, const std::string& name) {
  std::string description = replaced(option.description, "\\", "\\\\");
  for (const char special : {'[', ']', ':'})
    description = replaced(description, {&special, 1}, fmt::format("\\{}", special));
  std::string spec = name + (option.takes_value && name.starts_with("--") ? "=" : "") + "[" + description + "]";
  if (option.takes_value) {
    const std::string action = option.takes_file        ? "_files"
                               : option.choices.empty() ? ""
                                                        : fmt::format("({})", fmt::join(option.choices, " "));
    spec += fmt::format(":{}:{}", option.long_name, action);
  }
  return "      " + shell_quoted("*" + spec) + " \\\n";
}

std::string zsh_options(const std::vector<OptionWords>& options) {
  std::string text;
  for (const OptionWords& option : options) {
    text += zsh_option(option, "--" + option.long_name);
    if (!option.short_name.empty()) text += zsh_option(option, "-" + option.short_name);
  }
  return text;
}

std::string zsh_words(const CommandWords& command) {
  if (command.words.empty()) return "      '*:file:_files'";
  std::string text;
  for (const Word& word : command.words) {
    const std::string description = replaced(replaced(word.description, "\"", ""), ":", "\\:");
    text += fmt::format(" {}\\:\"{}\"", word.text, description.empty() ? word.text : description);
  }
  return "      " + shell_quoted("*: :((" + text.substr(1) + "))");
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string places;
  for (const CommandWords& command : commands) {
    const std::string everywhere = command.path.empty() ? "" : zsh_options(commands[0].options);
    places += fmt::format("    {}) _arguments \\\n{}{}{} ;;\n", shell_quoted(command.path),
                          zsh_options(command.options), everywhere, zsh_words(command));
  }
  return fmt::format(R"(#compdef ballast
# zsh completion for ballast; put it into a folder of $fpath as _ballast, or: source <(ballast completion zsh)
_ballast() {{
  local at='' word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$at $word" in
      ({}) at+=" $word" ;;
    esac
  done
  case $at in
{}  esac
}}
if [[ $funcstack[1] == _ballast ]]; then _ballast "$@"; else compdef _ballast ballast; fi
)",
                     paths(commands, "|"), places);
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text = fmt::format(R"(# fish completion for ballast; load it with: ballast completion fish | source
function __ballast_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case {}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
)",
                                 paths(commands, " "));
  for (const CommandWords& command : commands) {
    const std::string here = fmt::format("complete -c ballast -n '__ballast_at \"{}\"'", command.path);
    for (const Word& word : command.words)
      text += fmt::format("{} -f -a {} -d {}\n", here, word.text, fish_quoted(word.description));
    for (const OptionWords& option : command.options) {
      // The options of the top level may stand after any verb.
      text += command.path.empty() ? "complete -c ballast" : here;
      text += " -l " + option.long_name;
      if (!option.short_name.empty()) text += " -s " + option.short_name;
      if (option.takes_value) text += option.takes_file ? " -r -F" : " -x";
      if (!option.choices.empty()) text += " -a " + fish_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
      text += " -d " + fish_quoted(option.description) + "\n";
    }
  }
  return text;
}

std::string script_for(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw Error(Errc::invalid_argument, fmt::format("there is no completion for \"{}\"", shell))
      .hint("one of bash, zsh, fish");
}

}  // namespace

void add_completion(Command& verb, Session& session) {
  auto shell = std::make_shared<std::string>();
  verb.positional("SHELL", shell.get(), "bash, zsh or fish");
  verb.examples = R"(  source <(ballast completion bash)
  ballast completion zsh > ~/.zfunc/_ballast
  ballast completion fish > ~/.config/fish/completions/ballast.fish
)";
  verb.run = [shell, &verb, &session] {
    session.out.write(script_for(*shell, all_commands(*verb.parent)));
    return 0;
  };
}

}  // namespace ballast::cli
