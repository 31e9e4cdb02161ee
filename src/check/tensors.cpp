#include "check/tensors.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/hash.hpp>
#include <ballast/model_info.hpp>

#include "core/text.hpp"
#include "llamacpp/model_folder.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kLeastDuplicate = 4096;  // smaller tensors, such as norms that are all ones, are often alike
constexpr std::size_t kSample = 4096;

bool is_weight(const Tensor& tensor) {
  const bool has_values = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
  return tensor.rank() >= 2 && has_values;
}

void look_at_dtypes(const Checkpoint& checkpoint, const CheckPolicy& policy, FindingCollector& out) {
  std::map<DType, std::pair<std::uint64_t, std::string>> others;
  for (const auto& [name, tensor] : checkpoint) {
    const bool is_allowed =
        policy.dtypes.empty() ? tensor.dtype() != DType::f64 : std::ranges::count(policy.dtypes, tensor.dtype()) != 0;
    if (is_allowed || !is_weight(tensor)) continue;
    auto& [count, example] = others[tensor.dtype()];
    if (count++ == 0) example = name;
  }
  for (const auto& [dtype, found] : others) {
    const auto& [count, example] = found;
    out.add("dtype", {}, example,
            count == 1 ? fmt::format("is {}", name(dtype))
                       : fmt::format("is {}, and {} others are", name(dtype), count - 1));
  }
}

std::string sample_of(const Tensor& tensor) {
  std::string sample(2 * kSample, '\0');
  const auto bytes = std::as_writable_bytes(std::span(sample));
  tensor.read(0, bytes.first(kSample));
  tensor.read(tensor.nbytes() - kSample, bytes.last(kSample));
  return sample;
}

bool is_all_zero(std::string_view sample) { return sample.find_first_not_of('\0') == sample.npos; }

// The tensors that begin and end alike, by group; tensors that share their bytes on purpose are one.
std::vector<std::vector<std::string_view>> alike(const Checkpoint& checkpoint) {
  using Key = std::tuple<DType, std::vector<std::uint64_t>, std::string>;
  std::map<std::tuple<DType, std::vector<std::uint64_t>>, std::vector<std::string_view>> by_shape;
  std::set<std::tuple<const Storage*, std::uint64_t>> seen;
  for (const auto& [name, tensor] : checkpoint) {
    const bool is_one = is_weight(tensor) && tensor.has_data() && tensor.nbytes() >= kLeastDuplicate &&
                        tensor.is_contiguous() && !checkpoint.aliases.contains(name);
    if (!is_one || !seen.emplace(tensor.storage().get(), tensor.offset()).second) continue;
    by_shape[{tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}}].push_back(name);
  }
  std::map<Key, std::vector<std::string_view>> groups;
  for (const auto& [shape, names] : by_shape) {
    if (names.size() < 2) continue;
    for (const std::string_view name : names) {
      std::string sample = sample_of(checkpoint.at(name));
      if (!is_all_zero(sample)) groups[{std::get<0>(shape), std::get<1>(shape), std::move(sample)}].push_back(name);
    }
  }
  std::vector<std::vector<std::string_view>> result;
  for (auto& [key, names] : groups) {
    if (names.size() > 1) result.push_back(std::move(names));
  }
  return result;
}

void look_for_duplicates(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  if (out.ignores("duplicate")) return;
  for (const auto& names : alike(checkpoint)) {
    const std::set<std::string_view> wanted(names.begin(), names.end());
    const Checkpoint some = keep_names(checkpoint, [&](std::string_view name) { return wanted.contains(name); });
    std::map<std::string, std::vector<std::string>> by_digest;
    for (const HashReport::Tensor& tensor : hash(some, {.threads = options.threads}).tensors)
      by_digest[tensor.sha256.value_or("")].push_back(tensor.name);
    for (const auto& [digest, same] : by_digest) {
      if (same.size() < 2) continue;
      out.add("duplicate", {}, same[1],
              fmt::format("has the bytes of {}{}", quote(same[0]),
                          same.size() == 2 ? "" : fmt::format(", and so have {} others", same.size() - 2)));
    }
  }
}

bool says_licence(const llamacpp::ModelFolder& folder, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string name = lower_case(file);
    if (name.starts_with("license") || name.starts_with("licence") || name.starts_with("copying")) return true;
  }
  const auto card = folder.text("README.md");
  if (!card || !card->starts_with("---")) return false;
  const std::string_view matter = std::string_view(*card).substr(0, card->find("\n---", 3));
  return matter.find("\nlicense") != matter.npos;
}

}  // namespace

void look_at_tensors(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  look_at_dtypes(checkpoint, options.policy, out);
  look_for_duplicates(checkpoint, options, out);
}

void look_at_folder(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  const ModelInfo model = model_info(checkpoint, options.open);
  for (const Note& note : model.notes) out.add("configuration", note.where, {}, note.text);
  const auto files = options.open.files->list(checkpoint.target);
  if (!files || model.empty()) return;
  if (checkpoint.format == Format::safetensors && !checkpoint.metadata.contains("format"))
    out.add("format", {}, {}, "the metadata has no \"format\"; transformers refuses such a file");
  if (!says_licence(llamacpp::ModelFolder(checkpoint.target, options.open), *files))
    out.add("licence", {}, {}, "there is no LICENSE, and README.md names none");
}

}  // namespace ballast
