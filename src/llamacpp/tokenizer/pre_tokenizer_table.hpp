// What is known about pre-tokenizers: the names, the regular expressions, and which structure has which name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ballast::llamacpp {

// A regular expression as tokenizer.json has it, with "\r" and "\n" escaped.
struct KnownRegex {
  std::string_view name, regex;
  bool is_beginning = false;  // the rest is one long class of letters
};

// What else a row may ask for.
enum class Ask : std::uint8_t { nothing, yes, no };

struct PreTokenizerRow {
  std::string_view words;                 // as pre_tokenizer_words() says it
  std::string_view name;                  // as llama.cpp says it
  std::string_view normalizer = "plain";  // "plain": none or NFC; else as normalizer_words() says it
  Ask bos = Ask::nothing;                 // does a token stand before every text?
  Ask ignores_merges = Ask::nothing;
  Ask roberta = Ask::nothing;      // is the post-processor RoBERTa's?
  std::string_view token = {};     // the vocabulary has it
  std::string_view no_token = {};  // the vocabulary lacks it
  std::string_view architecture = {};
};

std::span<const KnownRegex> known_regexes();
std::span<const PreTokenizerRow> pre_tokenizer_rows();  // the first one that fits counts
std::span<const std::string_view> pre_tokenizer_names();

}  // namespace ballast::llamacpp
