#include "words.hpp"

#include <array>
#include <cctype>

namespace ballast::python {
namespace {

struct Row {
  Remedy remedy;
  std::string_view words;
};

// In the order of Remedy.
constexpr std::array kRows = {
    Row{Remedy::adapter_name, "name="},
    Row{Remedy::allow_dangerous, "allow_dangerous=True"},
    Row{Remedy::allow_empty, "allow_empty=True"},
    Row{Remedy::allow_requantize, "allow_requantize=True"},
    Row{Remedy::architecture, "architecture="},
    Row{Remedy::base_vocabulary, "base_vocabulary="},
    Row{Remedy::cast, "dtype="},
    Row{Remedy::cast_by_name, "dtype="},
    Row{Remedy::compress, "compress=True"},
    Row{Remedy::dense, "dense=True"},
    Row{Remedy::dialect, "to="},
    Row{Remedy::diff, "ballast.diff()"},
    Row{Remedy::exclude, "exclude="},
    Row{Remedy::fetch, "ballast.fetch()"},
    Row{Remedy::fetch_folder, "output="},
    Row{Remedy::heads, "heads="},
    Row{Remedy::ignore_mismatched, "ignore_mismatched=True"},
    Row{Remedy::imatrix, "imatrix="},
    Row{Remedy::include, "include="},
    Row{Remedy::info, "ballast.info()"},
    Row{Remedy::initial_adapter, "initial_adapter="},
    Row{Remedy::keep_values, "keep_values=True"},
    Row{Remedy::kv_heads, "kv_heads="},
    Row{Remedy::lenient, "lenient=True"},
    Row{Remedy::limit, "limits="},
    Row{Remedy::ls, "ballast.ls()"},
    Row{Remedy::manifest, "ballast.convert(…, manifest=FILE)"},
    Row{Remedy::max_shard_bytes, "max_shard_size="},
    Row{Remedy::metadata, "ballast.convert(…, metadata={KEY: VALUE})"},
    Row{Remedy::overwrite, "force=True"},
    Row{Remedy::plain_http, "plain_http=True"},
    Row{Remedy::pre_tokenizer, "pre_tokenizer="},
    Row{Remedy::raw_blocks, "raw=True"},
    Row{Remedy::rename, "rename="},
    Row{Remedy::save_embeddings, "save_embeddings="},
    Row{Remedy::scan, "ballast.scan()"},
    Row{Remedy::stats, "ballast.stats()"},
    Row{Remedy::strict, "strict=True"},
    Row{Remedy::strip_prefix, "strip_prefix="},
    Row{Remedy::tensor_type, "tensor_type="},
    Row{Remedy::weights_only, "weights_only=True"},
};

constexpr bool is_in_enum_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].remedy) != i) return false;
  return kRows.size() == kRemedyCount;
}
static_assert(is_in_enum_order(), "keyword_of() indexes the table by the remedy");

bool is_of_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

}  // namespace

std::string keyword_of(Remedy remedy, std::string_view argument) {
  std::string words(kRows[static_cast<std::size_t>(remedy)].words);
  if (!argument.empty() && words.ends_with('=')) return words.append(argument);
  return words.ends_with('=') ? words.substr(0, words.size() - 1) : words;
}

std::string in_keywords(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_flag = text.substr(i, 2) == "--" && (i == 0 || !is_of_a_word(text[i - 1])) && i + 2 < text.size() &&
                         std::islower(static_cast<unsigned char>(text[i + 2])) != 0;
    if (!is_flag) {
      result += text[i++];
      continue;
    }
    for (i += 2; i < text.size() && is_of_a_word(text[i]); ++i) result += text[i] == '-' ? '_' : text[i];
    // "--root PATH" is root=PATH; what follows otherwise is the sentence.
    const bool has_value =
        i + 1 < text.size() && text[i] == ' ' && std::isupper(static_cast<unsigned char>(text[i + 1]));
    if (has_value) {
      result += '=';
      ++i;
    }
  }
  return result;
}

}  // namespace ballast::python
