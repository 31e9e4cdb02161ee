#include "core/remedy.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ballast {
namespace {

struct Row {
  Remedy remedy;
  std::string_view name;
  std::string_view with_argument = {};  // {} is the argument; if this is empty, there never is one
};

// In the order of Remedy.
constexpr std::array kRows = {
    Row{Remedy::adapter_name, "the name of the adapter"},
    Row{Remedy::allow_dangerous, "allow_dangerous"},
    Row{Remedy::allow_empty, "SaveOptions::allow_empty"},
    Row{Remedy::allow_requantize, "RecipeOptions::allow_requantize"},
    Row{Remedy::architecture, "NameOptions::architecture", "NameOptions::architecture = \"{}\""},
    Row{Remedy::base_vocabulary, "GetAdapterOptions::base_vocabulary"},
    Row{Remedy::cast, "cast()", "cast() to {}"},
    Row{Remedy::cast_by_name, "a CastRule", "a CastRule {}"},
    Row{Remedy::cat, "Tensor::read"},
    Row{Remedy::compress, "SaveOptions::compress"},
    Row{Remedy::dense, "densify()"},
    Row{Remedy::dequantize, "OpenOptions::dequantize"},
    Row{Remedy::dialect, "AdapterSaveOptions::dialect", "AdapterSaveOptions::dialect {}"},
    Row{Remedy::diff, "diff()"},
    Row{Remedy::exclude, "Selection::exclude"},
    Row{Remedy::fetch, "fetch()", "fetch(\"{}\")"},
    Row{Remedy::fetch_folder, "FetchOptions::folder"},
    Row{Remedy::hash_file, "hash()"},
    Row{Remedy::heads, "NameOptions::head_count", "NameOptions::head_count = {}"},
    Row{Remedy::ignore_mismatched, "SetAdapterOptions::ignore_mismatched_sizes"},
    Row{Remedy::imatrix, "RecipeOptions::importance"},
    Row{Remedy::include, "Selection::include"},
    Row{Remedy::info, "summarize()"},
    Row{Remedy::initial_adapter, "AdapterLoadOptions::initial_adapter"},
    Row{Remedy::keep_values, "SaveOptions::keep_values"},
    Row{Remedy::kv_heads, "NameOptions::head_count_kv", "NameOptions::head_count_kv = {}"},
    Row{Remedy::lenient, "OpenOptions::lenient"},
    Row{Remedy::limit, "Limits", "Limits::{}"},
    Row{Remedy::limits, "limits.hpp"},
    Row{Remedy::ls, "Checkpoint::tensors"},
    Row{Remedy::manifest, "save_manifest()"},
    Row{Remedy::max_shard_bytes, "SaveOptions::max_shard_bytes"},
    Row{Remedy::meta_get, "Checkpoint::typed_metadata"},
    Row{Remedy::metadata, "Checkpoint::metadata"},
    Row{Remedy::names, "to_names()"},
    Row{Remedy::output, "the path"},
    Row{Remedy::overwrite, "SaveOptions::overwrite"},
    Row{Remedy::plain_http, "HttpOptions::allow_plain"},
    Row{Remedy::pre_tokenizer, "TokenizerOptions::pre_tokenizer", "TokenizerOptions::pre_tokenizer = \"{}\""},
    Row{Remedy::raw_blocks, "SaveOptions::raw_blocks"},
    Row{Remedy::rename, "rename()", "rename() by {}"},
    Row{Remedy::root, "OpenOptions::root", "OpenOptions::root = \"{}\""},
    Row{Remedy::save_embeddings, "GetAdapterOptions::embeddings"},
    Row{Remedy::scan, "scan()"},
    Row{Remedy::stats, "stats()"},
    Row{Remedy::strict, "SaveOptions::strict"},
    Row{Remedy::strip_prefix, "strip_prefix()", "strip_prefix(\"{}\")"},
    Row{Remedy::tensor_type, "RecipeOptions::tensor_types"},
    Row{Remedy::weights_only, "Safety::strict"},
};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].remedy) != i) return false;
  return kRows.size() == kRemedyCount;
}
static_assert(rows_follow_the_enum(), "name_in_library() indexes the table by the remedy");

// A control character, which quoted text from files never has. A letter for the remedy follows it, then the argument.
constexpr char kMark = '\x1a';

}  // namespace

std::string name_in_library(Remedy remedy, std::string_view argument) {
  const Row& row = kRows[static_cast<std::size_t>(remedy)];
  const auto where = row.with_argument.find("{}");
  if (argument.empty() || where == std::string_view::npos) return std::string(row.name);
  return std::string(row.with_argument).replace(where, 2, argument);
}

std::string Advice::mention(Remedy remedy, std::string_view argument) {
  std::string text = {kMark, static_cast<char>('A' + static_cast<int>(remedy))};
  return text.append(argument) + kMark;
}

std::string Advice::text(const Words& words) const {
  std::string text;
  std::string_view rest = text_;
  for (auto mark = rest.find(kMark); mark != rest.npos; mark = rest.find(kMark)) {
    const auto end = rest.find(kMark, mark + 1);
    const auto number = static_cast<std::size_t>(mark + 1 < rest.size() ? rest[mark + 1] - 'A' : -1);
    if (end == rest.npos || end < mark + 2 || number >= kRemedyCount) break;
    text.append(rest.substr(0, mark)) += words(static_cast<Remedy>(number), rest.substr(mark + 2, end - mark - 2));
    rest.remove_prefix(end + 1);
  }
  return text.append(rest);
}

}  // namespace ballast
