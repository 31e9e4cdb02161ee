#include "words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <variant>

#include "host.hpp"
#include "remedies.hpp"

namespace ballast::python {
namespace {

// What becomes of the argument that a hint suggests.
enum class Value : std::uint8_t {
  none,    // there is none, or the words have it already
  text,    // architecture="llama"
  words,   // dtype="F32", "F16" or "BF16"
  number,  // heads=32
  field,   // limits={"max_rank": …}
  call,    // ballast.fetch("hf://org/name")
};

struct Row {
  Remedy remedy;
  std::string_view words;
  Value value = Value::none;
};

// In the order of Remedy.
constexpr std::array kRows = {
    Row{Remedy::adapter_name, "name="},
    Row{Remedy::allow_dangerous, "allow_dangerous=True"},
    Row{Remedy::allow_empty, "allow_empty=True"},
    Row{Remedy::allow_requantize, "allow_requantize=True"},
    Row{Remedy::architecture, "architecture=", Value::text},
    Row{Remedy::base_vocabulary, "base_vocabulary="},
    Row{Remedy::cast, "dtype=", Value::words},
    Row{Remedy::cast_by_name, "dtype=", Value::text},
    Row{Remedy::cat, "ballast.open(…)[NAME].tobytes()"},
    Row{Remedy::compress, "compress=True"},
    Row{Remedy::dense, "dense=True"},
    Row{Remedy::dequantize, "dequantize=True"},
    Row{Remedy::dialect, "to=", Value::words},
    Row{Remedy::diff, "ballast.diff()"},
    Row{Remedy::exclude, "exclude="},
    Row{Remedy::fetch, "ballast.fetch()", Value::call},
    Row{Remedy::fetch_folder, "output="},
    Row{Remedy::hash_file, "ballast.convert(…, manifest=FILE)"},
    Row{Remedy::heads, "heads=", Value::number},
    Row{Remedy::ignore_mismatched, "ignore_mismatched=True"},
    Row{Remedy::imatrix, "imatrix=", Value::text},
    Row{Remedy::include, "include="},
    Row{Remedy::info, "ballast.info()"},
    Row{Remedy::initial_adapter, "initial_adapter="},
    Row{Remedy::keep_values, "keep_values=True"},
    Row{Remedy::kv_heads, "kv_heads=", Value::number},
    Row{Remedy::lenient, "lenient=True"},
    Row{Remedy::limit, "limits=", Value::field},
    Row{Remedy::limits, "help(ballast.open)"},
    Row{Remedy::ls, "ballast.ls()"},
    Row{Remedy::manifest, "ballast.convert(…, manifest=FILE)"},
    Row{Remedy::max_shard_bytes, "max_shard_size="},
    Row{Remedy::meta_get, "ballast.meta.get(TARGET)"},
    Row{Remedy::metadata, "ballast.convert(…, metadata={KEY: VALUE})"},
    Row{Remedy::names, "names=", Value::text},
    Row{Remedy::output, "output="},
    Row{Remedy::overwrite, "force=True"},
    Row{Remedy::plain_http, "plain_http=True"},
    Row{Remedy::pre_tokenizer, "pre_tokenizer=", Value::text},
    Row{Remedy::raw_blocks, "raw=True"},
    Row{Remedy::rename, "rename="},
    Row{Remedy::root, "root=", Value::text},
    Row{Remedy::save_embeddings, "save_embeddings="},
    Row{Remedy::scan, "ballast.scan()"},
    Row{Remedy::stats, "ballast.stats()"},
    Row{Remedy::strict, "strict=True"},
    Row{Remedy::strip_prefix, "strip_prefix=", Value::text},
    Row{Remedy::tensor_type, "tensor_type=", Value::text},
    Row{Remedy::weights_only, "safety=\"strict\""},
};

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].remedy) != i) return false;
  return kRows.size() == kRemedyCount;
}
static_assert(is_in_enum_order(), "keyword_of() indexes the table by the remedy");

// Keywords that other functions call otherwise.
struct Exception {
  Caller caller;
  Row row;
};
constexpr std::array kExceptions = {
    Exception{Caller::verb, {Remedy::weights_only, "weights_only=True"}},
    Exception{Caller::peft, {Remedy::adapter_name, "adapter_name="}},
    Exception{Caller::peft, {Remedy::cast, "t.to(…)"}},
    Exception{Caller::peft, {Remedy::ignore_mismatched, "ignore_mismatched_sizes=True"}},
    Exception{Caller::peft, {Remedy::save_embeddings, "save_embedding_layers="}},
};

Row row_for(Remedy remedy, Caller caller) {
  for (const Exception& exception : kExceptions)
    if (exception.caller == caller && exception.row.remedy == remedy) return exception.row;
  return kRows[static_cast<std::size_t>(remedy)];
}

// FILE, NAME and PATH stand for something; F32 and Q4_K_M are values.
bool is_placeholder(std::string_view word) {
  return std::ranges::all_of(word, [](unsigned char c) { return std::isupper(c) != 0; });
}

bool is_number(std::string_view word) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !word.empty() && is_digit(static_cast<unsigned char>(word[0])) &&
         std::ranges::all_of(word, [&](unsigned char c) { return is_digit(c) || c == '.' || c == 'e' || c == '-'; });
}

std::string in_quotes(std::string_view word) {
  if (word.size() > 1 && word.starts_with('\'') && word.ends_with('\'')) word = word.substr(1, word.size() - 2);
  if (word.starts_with('"') || is_placeholder(word) || is_number(word)) return std::string(word);
  return '"' + std::string(word) + '"';
}

// "F32, F16 or BF16" with each word in quotes.
std::string each_in_quotes(std::string_view words) {
  std::string result;
  while (!words.empty()) {
    const auto comma = words.find(", "), last = words.find(" or ");
    const auto at = std::min(comma, last);
    result += in_quotes(words.substr(0, at));
    if (at == words.npos) break;
    const std::string_view between = at == comma ? ", " : " or ";
    result += between;
    words.remove_prefix(at + between.size());
  }
  return result;
}

bool is_of_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// The options that are there or not, of all verbs.
const std::set<std::string, std::less<>>& switches() {
  static const auto names = [] {
    std::set<std::string, std::less<>> found;
    const auto add = [&](const cli::Command& command) {
      for (const cli::Argument& argument : command.arguments)
        if (std::holds_alternative<bool*>(argument.destination)) found.insert(argument.long_name);
    };
    cli::visit_commands([&](const cli::Command& root) {
      add(root);
      for (const cli::Command& verb : root.verbs) {
        add(verb);
        for (const cli::Command& inner : verb.verbs) add(inner);
      }
    });
    return found;
  }();
  return names;
}

// The value behind a flag: "PATH", "8", "'a b'", "KEY=VALUE". Empty if the sentence goes on instead.
std::string_view value_at(std::string_view text) {
  if (text.empty() || (text[0] != ' ' && text[0] != '=')) return {};
  const bool must_be = text[0] == '=';
  text.remove_prefix(1);
  const auto quoted = text.starts_with('\'') ? text.find('\'', 1) : text.npos;
  if (quoted != text.npos) return text.substr(0, quoted + 1);
  const std::string_view word = text.substr(0, text.find_first_of(" ,;:)\n"));
  if (word.empty()) return {};
  const auto first = static_cast<unsigned char>(word[0]);
  const bool is_value =
      std::isupper(first) != 0 || std::isdigit(first) != 0 || first == '@' || word.find('=') != word.npos;
  return must_be || is_value ? word : std::string_view();
}

}  // namespace

std::string keyword_of(Remedy remedy, std::string_view argument, Caller caller) {
  const Row row = row_for(remedy, caller);
  const std::string words(row.words);
  if (!argument.empty()) {
    switch (row.value) {
      case Value::text: return words + in_quotes(argument);
      case Value::words: return words + each_in_quotes(argument);
      case Value::number: return words + std::string(argument);
      case Value::field: return words + "{\"" + std::string(argument) + "\": …}";
      case Value::call: return words.substr(0, words.size() - 1) + '"' + std::string(argument) + "\")";
      case Value::none: break;
    }
  }
  return words;
}

Advice::Words words_for(Caller caller) {
  return [caller](Remedy remedy, std::string_view argument) {
    std::string words = keyword_of(remedy, argument, caller);
    std::string verb(caller == Caller::verb ? cli::other_verb_for(remedy) : std::string_view());
    if (verb.empty()) return words;
    std::ranges::replace(verb, ' ', '.');
    return words + " of ballast." + verb + "()";
  };
}

std::string in_keywords(std::string_view text) {
  std::string result;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) is_quoted = !is_quoted;
    const bool is_flag = !is_quoted && text.substr(i, 2) == "--" && (i == 0 || !is_of_a_word(text[i - 1])) &&
                         i + 2 < text.size() && std::islower(static_cast<unsigned char>(text[i + 2])) != 0;
    if (!is_flag) {
      result += text[i++];
      continue;
    }
    const std::size_t first = i + 2;
    for (i = first; i < text.size() && is_of_a_word(text[i]); ++i) result += text[i] == '-' ? '_' : text[i];
    if (text.substr(first, i - first) == "limit") result += 's';  // as open() calls it
    if (switches().contains(text.substr(first, i - first))) {
      result += "=True";
    } else if (const std::string_view value = value_at(text.substr(i)); !value.empty()) {
      result += '=' + in_quotes(value);
      i += 1 + value.size();
    }
  }
  return result;
}

}  // namespace ballast::python
