#include <ballast/error.hpp>
#include <ballast/from_diff.hpp>
#include <ballast/scan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/progress_meter.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "kernels/linear/svd.hpp"
#include "llamacpp/names/match.hpp"
#include "peft/embeddings.hpp"
#include "peft/files/dialects.hpp"
#include "peft/matrix.hpp"
#include "peft/names.hpp"

namespace ballast {
namespace peft {
namespace {

// A matrix that both checkpoints have.
struct WeightPair {
  std::string_view name;
  const Tensor *base, *tuned;

  bool is_table() const { return is_lookup_table(module_of(name)); }  // PEFT keeps its factors in another form
};

struct Extracted {
  FromDiffReport::Layer layer;
  Tensor a, b;
  bool is_changed = false;
};

Tensor to_tensor(const Matrix& matrix, const Shape& shape) {
  return Tensor::from_values<float>(DType::f32, shape, matrix.values());
}

// The sum of squares of what the factors leave of a change. A difference of two sums would lose it in their rounding.
double sum_left(Matrix change, const kernels::TruncatedSvd& svd) {
  std::vector<float> scaled = svd.u;
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= svd.values[i % svd.rank];
  kernels::multiply({scaled.data(), change.rows(), svd.rank, svd.rank},
                    {svd.v.data(), svd.rank, change.columns(), change.columns()}, -1, 1, change.values().data(),
                    change.columns());
  return sum_of_squares(change.values());
}

// Each factor takes the root of every singular value, so that both are of one size.
void make_factors(Extracted& done, const WeightPair& pair, const kernels::TruncatedSvd& svd, Extent extent) {
  Matrix b({extent.rows, svd.rank}, svd.u), a({svd.rank, extent.columns}, svd.v);
  for (std::size_t k = 0; k < svd.rank; ++k) {
    const float root = std::sqrt(svd.values[k]);
    for (std::size_t row = 0; row < extent.rows; ++row) b(row, k) *= root;
    for (float& value : a.row(k)) value *= root;
  }
  if (pair.is_table()) {  // W + (B A)', with A [r, rows] and B [columns, r]
    done.a = to_tensor(transposed(b), {svd.rank, extent.rows});
    done.b = to_tensor(transposed(a), {extent.columns, svd.rank});
    return;
  }
  const Shape& shape = pair.base->shape();
  std::vector<std::uint64_t> a_dims(shape.begin(), shape.end()), b_dims(shape.rank(), 1);
  a_dims[0] = svd.rank;
  b_dims[0] = extent.rows;
  b_dims[1] = svd.rank;
  if (shape.rank() == 2) a_dims[1] = extent.columns;
  done.a = to_tensor(a, Shape(a_dims));
  done.b = to_tensor(b, Shape(b_dims));
}

Extracted extract(const WeightPair& pair, const FromDiffOptions& options) {
  const Shape& shape = pair.base->shape();
  const std::vector<float> before = read_floats(*pair.base);
  Matrix change = read_matrix(*pair.tuned);
  for (std::size_t i = 0; i < before.size(); ++i) change.values()[i] -= before[i];
  const double size = sum_of_squares(change.values()), size_before = sum_of_squares(before);
  Extracted done;
  if (size == 0) return done;
  if (!std::isfinite(size)) {
    throw Error(Errc::mismatch, fmt::format("tensor {} is not finite in one of the checkpoints", quote(pair.name)))
        .hint(leave_it_out());
  }
  if (shape.rank() == 2 && options.fan_in_fan_out && !pair.is_table()) change = transposed(change);
  const Extent extent{change.rows(), change.columns()};
  const auto svd = kernels::truncated_svd(change.values(), extent.rows, extent.columns, options.rank);
  make_factors(done, pair, svd, extent);
  done.is_changed = true;
  done.layer = {std::string(pair.name), shape, svd.rank, size_before > 0 ? std::sqrt(size / size_before) : 0,
                std::sqrt(sum_left(std::move(change), svd) / size)};
  return done;
}

// Whether a product could be added to the tensor: integers have no halves, and codes no sums.
bool holds_a_product(std::string_view name, const Tensor& tensor) {
  const DTypeKind kind = info(tensor.dtype()).kind;
  const bool is_real = kind == DTypeKind::floating || kind == DTypeKind::ggml;
  return is_real && name.ends_with(".weight") && tensor.rank() >= 2 && tensor.numel() != 0;
}

// The names that adapters know. A weight that is transposed on the way must be decoded, as it is for the comparison.
Checkpoint with_names_of_peft(const Checkpoint& checkpoint, const FromDiffOptions& options) {
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  if (!has_gguf_names(checkpoint)) return checkpoint;
  if (names::find_architecture(checkpoint, options.names) == nullptr) {
    throw Error(Errc::unsupported, "a LoRA needs the names of Hugging Face, which are not known for this architecture")
        .in(checkpoint.target)
        .hint("name one whose names are known with " + mention(Remedy::architecture) +
              "; or convert both checkpoints from the originals");
  }
  return to_names(cast(checkpoint, DType::f32), NameStyle::huggingface, options.names);
}

// The matrices to compare. The report gets the other tensors.
std::vector<WeightPair> weight_pairs(const Checkpoint& base, const Checkpoint& tuned, const Selection& selection,
                                     FromDiffReport& report) {
  std::vector<WeightPair> pairs;
  const PackedParts packed_base(base), packed_tuned(tuned);
  for (const auto& [name, tensor] : tuned)
    if (selection.matches(name) && !base.contains(name) && !packed_tuned.contain(tensor))
      packed_base.refuse_weight(name, "subtracted");
  for (const auto& [name, tensor] : base)
    if (selection.matches(name) && !tuned.contains(name) && !packed_base.contain(tensor))
      packed_tuned.refuse_weight(name, "subtracted from");
  for (const auto& [name, tensor] : base) {
    if (!selection.matches(name)) continue;
    const Tensor* other = tuned.find(name);
    if (other == nullptr || other->shape() != tensor.shape()) {
      if (other != nullptr) {
        packed_base.refuse(name, tensor, "subtracted");
        packed_tuned.refuse(name, *other, "subtracted from");
      }
      report.missing.emplace_back(name);
    } else if (holds_a_product(name, tensor) && !(base.format == Format::gguf && name.starts_with("blk."))) {
      packed_base.refuse(name, tensor, "subtracted");
      packed_tuned.refuse(name, *other, "subtracted from");
      pairs.push_back({name, &tensor, other});
    } else if (read_floats(tensor) == read_floats(*other)) {
      ++report.unchanged;
    } else {
      report.left.emplace_back(name);
    }
  }
  for (const auto& [name, tensor] : tuned) {
    if (!base.contains(name) && selection.matches(name)) report.missing.emplace_back(name);
  }
  return pairs;
}

std::vector<Extracted> extract_all(const std::vector<WeightPair>& pairs, const FromDiffOptions& options) {
  std::uint64_t total = 0;
  for (const WeightPair& pair : pairs) total += pair.base->nbytes();
  std::vector<Extracted> all(pairs.size());
  ProgressMeter meter(options.progress, "extracting", total);
  ThreadPool(options.threads).run(pairs.size(), [&](std::size_t i, unsigned) {
    all[i] = extract(pairs[i], options);
    meter.add(pairs[i].base->nbytes());
  });
  return all;
}

FromDiff lora_of(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options) {
  FromDiff result;
  const std::vector<WeightPair> pairs = weight_pairs(base, tuned, options.selection, result.report);
  LoraModules modules;
  for (Extracted& done : extract_all(pairs, options)) {
    if (!done.is_changed) {
      ++result.report.unchanged;
      continue;
    }
    LoraModule& module = modules[std::string(module_of(done.layer.name))];
    module.a = std::move(done.a);
    module.b = std::move(done.b);
    module.is_embedding = is_lookup_table(module_of(done.layer.name));
    result.report.layers.push_back(std::move(done.layer));
  }
  if (modules.empty()) {
    throw Error(Errc::mismatch, "no matrix differs between the two checkpoints, so there is nothing to extract")
        .hint(mention(Remedy::diff) + " shows what does differ");
  }
  put_modules(result.adapter, modules);
  result.adapter.config.fields.set("base_model_name_or_path", base.target);
  result.adapter.config.fields.set("fan_in_fan_out", options.fan_in_fan_out);
  result.adapter.source = tuned.target;
  return result;
}

}  // namespace
}  // namespace peft

FromDiff lora_from_diff(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options) {
  if (options.rank == 0) throw Error(Errc::invalid_argument, "a LoRA has a rank of at least 1");
  return peft::lora_of(peft::with_names_of_peft(base, options), peft::with_names_of_peft(tuned, options), options);
}

}  // namespace ballast
