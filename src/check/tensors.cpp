#include "check/tensors.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <ballast/duplicates.hpp>
#include <ballast/error.hpp>
#include <ballast/model_info.hpp>

#include "core/text.hpp"
#include "inspect/tensor_ranges.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kLeastDuplicate = 4096;  // smaller tensors, such as norms that are all ones, are often alike
constexpr std::size_t kSample = 4096;            // bytes that say whether a tensor is all zeros

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
            count == 1   ? fmt::format("is {}", name(dtype))
            : count == 2 ? fmt::format("is {}, and so is another one", name(dtype))
                         : fmt::format("is {}, and so are {} others", name(dtype), count - 1));
  }
}

bool is_all_zero(const Tensor& tensor) {
  std::string sample(kSample, '\1');
  tensor.read(0, std::as_writable_bytes(std::span(sample)));
  return sample.find_first_not_of('\0') == sample.npos;
}

// Tensors that share their bytes on purpose are one, and zeros have a rule of their own.
void look_for_duplicates(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  if (out.ignores("duplicate")) return;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    if (is_weight(tensor) && tensor.nbytes() >= kLeastDuplicate && !checkpoint.aliases.contains(name))
      numbers.push_back(i);
  }
  const std::vector<bool> is_repeated = find_repeated(checkpoint, numbers);
  std::erase_if(numbers, [&](std::size_t number) { return is_repeated[number]; });
  for (const Duplicates& same : find_duplicates(checkpoint, numbers, {.threads = options.threads})) {
    const auto& [first, tensor] = checkpoint.tensors[same.tensors[0]];
    if (is_all_zero(tensor)) continue;
    const std::string others = same.copies == 2   ? ""
                               : same.copies == 3 ? ", and so has another one"
                                                  : fmt::format(", and so have {} others", same.copies - 2);
    out.add("duplicate", {}, std::string(checkpoint.tensors[same.tensors[1]].name),
            fmt::format("has the bytes of {}{}", quote(first), others));
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

void look_at_format(const Metadata& metadata, FindingCollector& out) {
  constexpr std::string_view kKnown[] = {"pt", "tf", "flax", "mlx"};  // by transformers
  const auto format = metadata.find("format");
  if (format == metadata.end())
    out.add("format", {}, {}, "the metadata has no \"format\"; transformers refuses such a file");
  else if (std::ranges::find(kKnown, format->second) == std::end(kKnown))
    out.add("format", {}, {},
            fmt::format("the metadata's \"format\" is {}; transformers refuses such a file", quote(format->second)));
}

}  // namespace

void look_at_tensors(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  look_at_dtypes(checkpoint, options.policy, out);
  look_for_duplicates(checkpoint, options, out);
}

void look_at_folder(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out) {
  const ModelInfo model = model_info(checkpoint, options.open);
  for (const Note& note : model.notes) {
    if (note.kind == Note::Kind::oddity) out.add("configuration", note.where, {}, note.text);
  }
  const auto files = options.open.files->list(checkpoint.target);
  if (!files || model.empty()) return;
  if (checkpoint.format == Format::safetensors) look_at_format(checkpoint.metadata, out);
  if (!says_licence(llamacpp::ModelFolder(checkpoint.target, options.open), *files))
    out.add("licence", {}, {}, "there is no LICENSE, and README.md names none");
}

}  // namespace ballast
