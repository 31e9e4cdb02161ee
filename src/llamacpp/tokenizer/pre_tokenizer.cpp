#include "llamacpp/tokenizer/pre_tokenizer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <ballast/remedy.hpp>
#include <ballast/suggest.hpp>

#include "core/text.hpp"
#include "llamacpp/tokenizer/pre_tokenizer_table.hpp"
#include "llamacpp/tokenizer/tokenizer_classes.hpp"

namespace ballast::llamacpp {
namespace {

// Files write line ends in a regular expression as they are, or escaped.
std::string with_escaped_line_ends(std::string_view regex) {
  std::string escaped;
  for (const char c : regex) {
    if (c == '\r')
      escaped += "\\r";
    else if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped;
}

std::string regex_words(std::string_view regex) {
  const std::string escaped = with_escaped_line_ends(regex);
  for (const KnownRegex& known : known_regexes())
    if (known.is_beginning ? escaped.starts_with(known.regex) : escaped == known.regex)
      return fmt::format("<{}>", known.name);
  return fmt::format("/{}/", escaped);
}

// What a pattern removes if it is inverted is what the pattern itself finds.
std::string split_words(const Json& split) {
  const Json* pattern = split.find("pattern");
  const Json* regex = pattern ? pattern->find("Regex") : nullptr;
  std::string words =
      "Split " + (regex ? regex_words(token_text(regex))
                        : fmt::format("\"{}\"", token_text(pattern ? pattern->find("String") : nullptr)));
  const std::string_view behavior = token_text(split.find("behavior"));
  const bool is_inverted = is_true(split.find("invert"));
  if (behavior == "Removed" && is_inverted) return words;
  if (behavior != "Isolated") words.append(" ").append(behavior);
  return is_inverted ? words + " inverted" : words;
}

std::string byte_level_words(const Json& part, bool adds_prefix_space) {
  const Json* use_regex = part.find("use_regex");
  std::string words = use_regex && !is_true(use_regex) ? "ByteLevel without regex" : "ByteLevel";
  return adds_prefix_space ? words + " with a space before the text" : words;
}

void append_words(std::string& words, const std::string& part) { words += words.empty() ? part : ", " + part; }

// JSON is nested at most 64 deep, and so are these calls.
void append_pre_tokenizer(std::string& words, const Json& part, bool adds_prefix_space) {
  const std::string_view type = token_text(part.find("type"));
  const Json* parts = part.find("pretokenizers");
  if (type == "Sequence" && parts && parts->is_list()) {
    for (const Json& inner : parts->list()) append_pre_tokenizer(words, inner, is_true(inner.find("add_prefix_space")));
  } else if (type == "ByteLevel") {
    append_words(words, byte_level_words(part, adds_prefix_space));
  } else if (type == "Split") {
    append_words(words, split_words(part));
  } else if (type == "Digits") {
    append_words(words, is_true(part.find("individual_digits")) ? "Digits individually" : "Digits");
  } else if (type == "Punctuation") {
    const std::string_view behavior = token_text(part.find("behavior"));
    append_words(words,
                 behavior.empty() || behavior == "Isolated" ? "Punctuation" : fmt::format("Punctuation {}", behavior));
  } else {
    append_words(words, type.empty() ? "something without a type" : std::string(type));
  }
}

// "none", "NFC", "Replace " " by "▁"": the parts of a sequence one after the other.
void append_normalizer(std::string& words, const Json& part) {
  const std::string_view type = token_text(part.find("type"));
  const Json* parts = part.find("normalizers");
  if (type == "Sequence" && parts && parts->is_list()) {
    for (const Json& inner : parts->list()) append_normalizer(words, inner);
  } else if (type == "Replace") {
    const Json* pattern = part.find("pattern");
    append_words(words, fmt::format("Replace \"{}\" by \"{}\"", token_text(pattern ? pattern->find("String") : nullptr),
                                    token_text(part.find("content"))));
  } else {
    append_words(words, std::string(type));
  }
}

std::string normalizer_words(const Json* normalizer) {
  std::string words;
  if (non_null(normalizer)) append_normalizer(words, *normalizer);
  return words.empty() ? "none" : words;
}

// Some classes replace the post-processor by their own.
bool puts_bos(const TokenizerFiles& files) {
  const TokenizerClass& by_class = tokenizer_class(files);
  if (by_class.puts_bos) {
    const Json* setting = files.setting("add_bos_token");
    return setting && setting->is_bool() ? setting->boolean() : *by_class.puts_bos;
  }
  const Json* processor = files.part("post_processor");
  const Json* parts = processor ? processor->find("processors") : nullptr;
  const auto begins_with_token = [](const Json& part) {
    const Json* single = part.find("single");
    return single && single->is_list() && !single->list().empty() && single->list()[0].find("SpecialToken");
  };
  if (parts && parts->is_list()) return std::ranges::any_of(parts->list(), begins_with_token);
  return processor && begins_with_token(*processor);
}

bool is_roberta(const TokenizerFiles& files) {
  const Json* processor = files.part("post_processor");
  return processor && token_text(processor->find("type")) == "RobertaProcessing";
}

bool ignores_merges(const TokenizerFiles& files) {
  const Json* model = files.part("model");
  return model && is_true(model->find("ignore_merges"));
}

struct Structure {
  std::string words, normalizer;
  bool bos, ignores_merges, roberta;
};

// Without a tokenizer.json, transformers makes one from vocab.json and merges.txt, as the class has it.
Structure structure_of(const TokenizerFiles& files) {
  const Json* normalizer = files.part("normalizer");
  const Json* pre_tokenizer = files.part("pre_tokenizer");
  Structure structure{pre_tokenizer_words(pre_tokenizer, is_true(files.setting("add_prefix_space"))),
                      normalizer_words(normalizer), puts_bos(files), ignores_merges(files), is_roberta(files)};
  if (files.tokenizer()) return structure;
  const std::string_view name = tokenizer_class(files).name;
  structure.words = name == "Qwen2Tokenizer" ? "Split <qwen2>, ByteLevel without regex" : "ByteLevel";
  structure.normalizer = name == "Qwen2Tokenizer" ? "NFC" : "none";
  structure.roberta = name == "RobertaTokenizer";
  return structure;
}

bool agrees(Ask asked, bool is) { return asked == Ask::nothing || (asked == Ask::yes) == is; }

bool agrees(std::string_view normalizer, const std::string& is) {
  return normalizer == "plain" ? is == "none" || is == "NFC" : normalizer == is;
}

}  // namespace

std::string pre_tokenizer_words(const Json* pre_tokenizer, bool adds_prefix_space) {
  std::string words;
  if (non_null(pre_tokenizer)) append_pre_tokenizer(words, *pre_tokenizer, adds_prefix_space);
  return words.empty() ? "nothing" : words;
}

std::string pre_tokenizer_name(const TokenizerFiles& files, const Vocabulary& vocabulary,
                               std::string_view architecture) {
  const Structure structure = structure_of(files);
  for (const PreTokenizerRow& row : pre_tokenizer_rows()) {
    if (row.words == structure.words && agrees(row.normalizer, structure.normalizer) &&
        agrees(row.bos, structure.bos) && agrees(row.ignores_merges, structure.ignores_merges) &&
        agrees(row.roberta, structure.roberta) && (row.token.empty() || vocabulary.has(row.token)) &&
        (row.no_token.empty() || !vocabulary.has(row.no_token)) &&
        (row.architecture.empty() || row.architecture == architecture))
      return std::string(row.name);
  }
  throw files
      .error(Errc::unsupported,
             fmt::format("llama.cpp has no known name for this pre-tokenizer: {} (normalizer: {})",
                         escape_for_terminal(structure.words), escape_for_terminal(structure.normalizer)),
             "tokenizer.json")
      .hint("if you know a model of llama.cpp's that cuts text alike, name its pre-tokenizer with " +
            Advice::mention(Remedy::pre_tokenizer, "NAME"));
}

void require_pre_tokenizer(std::string_view name) {
  const auto names = pre_tokenizer_names();
  if (std::ranges::find(names, name) != names.end()) return;
  Error error(Errc::invalid_argument, fmt::format("llama.cpp knows no pre-tokenizer {}", quote(name)));
  if (const auto near = nearest(name, names)) error.hint(fmt::format("did you mean {}?", quote(*near)));
  throw error;
}

}  // namespace ballast::llamacpp
