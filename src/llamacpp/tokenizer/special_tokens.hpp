// SpecialTokens: what a GGUF file says about a tokenizer beside its tokens: merges, the ids of special tokens, whether
// they stand around a text, chat templates, and flags of the normalizer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/tokenizer/chat_templates.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct SpecialTokens {
  template <class T>
  using Named = std::vector<std::pair<std::string, T>>;  // in the order in which they were first set

  std::optional<MetadataEntry> merges;
  Named<std::uint64_t> ids;
  Named<bool> added;  // around a text
  ChatTemplates templates;
  std::optional<bool> lowercase, strip_accents;

  // The first value counts.
  void set_id(std::string_view kind, std::optional<std::uint64_t> id);
  void replace_id(std::string_view kind, std::uint64_t id);
  void set_added(std::string_view kind, bool value);  // the last value counts
  std::optional<std::uint64_t> id(std::string_view kind) const;

  void write(TypedMetadata& out) const;
};

enum class Merges : std::uint8_t { left_out, if_any, needed };

struct SpecialOptions {
  std::vector<std::string> kinds{"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
  Merges merges = Merges::left_out;            // Errc::unsupported if they are needed and there are none
  std::optional<std::uint64_t> token_count{};  // ids from here on are left out
};

SpecialTokens read_special_tokens(const TokenizerFiles& files, SpecialOptions options, std::vector<Note>& notes);

}  // namespace ballast::llamacpp
