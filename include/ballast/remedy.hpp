// Remedy and Advice: what a caller can do about an error or a note, in the words of whoever shows it.
//
// The library calls a remedy by the name of its option or function, the command by its flag. So a hint names remedies,
// and whoever shows the hint brings the words. Both are plain values that own their texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ballast {

// What hints tell callers to use, or to leave out.
enum class Remedy : std::uint8_t {
  adapter_name,
  allow_dangerous,
  allow_empty,
  allow_requantize,
  architecture,
  base_vocabulary,
  cast,
  cast_by_name,
  cat,
  compress,
  dense,
  dequantize,
  dialect,
  diff,
  exclude,
  fetch,
  fetch_folder,
  hash_file,
  heads,
  ignore_mismatched,
  imatrix,
  include,
  info,
  initial_adapter,
  keep_values,
  kv_heads,
  lenient,
  limit,
  limits,
  ls,
  manifest,
  max_shard_bytes,
  meta_get,
  metadata,
  names,
  output,
  overwrite,
  plain_http,
  pre_tokenizer,
  raw_blocks,
  rename,
  root,
  save_embeddings,
  scan,
  stats,
  strict,
  strip_prefix,
  tensor_type,
  weights_only,
};
inline constexpr std::size_t kRemedyCount = static_cast<std::size_t>(Remedy::weights_only) + 1;

// The name of the option or the function of this library, with the argument that a hint suggests; it may be empty.
std::string name_in_library(Remedy remedy, std::string_view argument);

// A sentence that may name remedies.
class Advice {
 public:
  using Words = std::function<std::string(Remedy, std::string_view argument)>;

  Advice() = default;
  Advice(std::string text) : text_(std::move(text)) {}
  Advice(std::string_view text) : text_(text) {}
  Advice(const char* text) : text_(text) {}

  bool empty() const noexcept { return text_.empty(); }
  std::string text() const { return text(name_in_library); }
  std::string text(const Words& words) const;

  // For texts that mention a remedy: "leave it out with " + Advice::mention(Remedy::exclude).
  static std::string mention(Remedy remedy, std::string_view argument = {});

 private:
  std::string text_;  // a remedy stands in it between two marks
};

}  // namespace ballast
