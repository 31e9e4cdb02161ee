#include <ballast/error.hpp>
#include <ballast/from_diff.hpp>

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "checkpoint/packed_parts.hpp"
#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "kernels/gemm.hpp"
#include "kernels/svd.hpp"
#include "ops/adapter/modules.hpp"
#include "ops/names_match.hpp"

namespace ballast {
namespace {

constexpr std::string_view kWeight = ".weight", kPrefix = "base_model.model.";

using adapter::is_lookup_table;  // on which depends how PEFT keeps the two factors

std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  const Tensor floats = tensor.to(DType::f32);
  if (floats.storage()) floats.storage()->prepare({});
  floats.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

double squares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  std::vector<float> turned(values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) turned[c * rows + r] = values[r * columns + c];
  }
  return turned;
}

// One matrix that both checkpoints have.
struct Work {
  std::string_view name;
  const Tensor *base, *tuned;
};

struct Done {
  FromDiffReport::Layer layer;
  Tensor a, b;
  bool is_changed = false;
};

class Extraction {
 public:
  explicit Extraction(const FromDiffOptions& options) : options_(options) {}

  Done run(const Work& work) const {
    std::vector<float> change = values_of(*work.tuned);
    const double before = subtract(change, values_of(*work.base));
    const double size = squares(change);
    Done done;
    if (size == 0) return done;
    if (!std::isfinite(size)) {
      throw Error(Errc::mismatch, fmt::format("tensor {} is not finite in one of the checkpoints", quote(work.name)))
          .hint("leave it out with --exclude");
    }
    const Shape& shape = work.base->shape();
    std::size_t rows = shape[0], columns = change.size() / rows;
    const bool is_turned = shape.rank() == 2 && options_.fan_in_fan_out && !is_lookup_table(module_of(work.name));
    if (is_turned) {
      change = transposed(change, rows, columns);
      std::swap(rows, columns);
    }
    const auto svd = kernels::truncated_svd(change, rows, columns, static_cast<std::size_t>(options_.rank));
    make_factors(done, work, svd, rows, columns);
    done.is_changed = true;
    done.layer = {std::string(work.name), shape, svd.rank, before > 0 ? std::sqrt(size / before) : 0,
                  std::sqrt(what_is_left(std::move(change), svd, rows, columns) / size)};
    return done;
  }

  static std::string_view module_of(std::string_view weight) {
    return weight.substr(0, weight.size() - kWeight.size());
  }

 private:
  // Returns the squares of what was there before.
  static double subtract(std::vector<float>& change, const std::vector<float>& base) {
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= base[i];
    return squares(base);
  }

  // The squares of it: computed, since a difference of two sums would have lost it in their rounding.
  static double what_is_left(std::vector<float> change, const kernels::TruncatedSvd& svd, std::size_t rows,
                             std::size_t columns) {
    std::vector<float> scaled = svd.u;
    for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= svd.values[i % svd.rank];
    kernels::multiply({scaled.data(), rows, svd.rank, svd.rank}, {svd.v.data(), svd.rank, columns, columns}, -1, 1,
                      change.data(), columns);
    return squares(change);
  }

  // Each factor takes the root of every singular value, so that both are of one size.
  static void make_factors(Done& done, const Work& work, const kernels::TruncatedSvd& svd, std::size_t rows,
                           std::size_t columns) {
    std::vector<float> b = svd.u, a = svd.v;
    for (std::size_t k = 0; k < svd.rank; ++k) {
      const float root = std::sqrt(svd.values[k]);
      for (std::size_t row = 0; row < rows; ++row) b[row * svd.rank + k] *= root;
      for (std::size_t column = 0; column < columns; ++column) a[k * columns + column] *= root;
    }
    const Shape& shape = work.base->shape();
    if (is_lookup_table(module_of(work.name))) {  // W + (B A)', with A [r, rows] and B [columns, r]
      std::swap(a, b);
      a = transposed(a, rows, svd.rank);
      b = transposed(b, svd.rank, columns);
      done.a = matrix(std::move(a), {svd.rank, rows});
      done.b = matrix(std::move(b), {columns, svd.rank});
      return;
    }
    std::vector<std::uint64_t> a_dims(shape.begin(), shape.end()), b_dims(shape.rank(), 1);
    a_dims[0] = svd.rank;
    b_dims[0] = rows;
    b_dims[1] = svd.rank;
    if (shape.rank() == 2) a_dims[1] = columns;
    done.a = matrix(std::move(a), Shape(a_dims));
    done.b = matrix(std::move(b), Shape(b_dims));
  }

  static Tensor matrix(std::vector<float> values, const Shape& shape) {
    return Tensor::from_values<float>(DType::f32, shape, values);
  }

  const FromDiffOptions& options_;
};

AdapterConfig config_of(const Checkpoint& base, const FromDiffOptions& options, const std::set<std::string>& modules) {
  Json::List targets;
  for (const std::string& module : modules) targets.emplace_back(module);
  AdapterConfig config;
  config.fields.set("base_model_name_or_path", base.target);
  config.fields.set("bias", "none");
  config.fields.set("fan_in_fan_out", options.fan_in_fan_out);
  config.fields.set("inference_mode", true);
  config.fields.set("lora_alpha", options.rank);
  config.fields.set("lora_dropout", 0.0);
  config.fields.set("peft_type", "LORA");
  config.fields.set("r", options.rank);
  config.fields.set("rank_pattern", Json::Members{});
  config.fields.set("alpha_pattern", Json::Members{});
  config.fields.set("target_modules", std::move(targets));
  config.fields.set("task_type", nullptr);
  config.fields.set("use_dora", false);
  config.fields.set("use_rslora", false);
  return config;
}

// A module whose dimension is smaller than the rank has a rank, and an alpha, of its own.
void note_smaller_rank(AdapterConfig& config, const std::string& module, std::uint64_t rank) {
  for (const char* field : {"rank_pattern", "alpha_pattern"}) {
    Json pattern = config.fields.at(field);
    pattern.set("^" + re2::RE2::QuoteMeta(module), rank);  // else it would be every module that ends so
    config.fields.set(field, std::move(pattern));
  }
}

bool is_same(const Tensor& a, const Tensor& b) { return values_of(a) == values_of(b); }

// Whether merging could add to it: integers have no halves, and codes no sums.
bool holds_a_product(std::string_view name, const Tensor& tensor) {
  const DTypeKind kind = info(tensor.dtype()).kind;
  const bool is_real = kind == DTypeKind::floating || kind == DTypeKind::ggml;
  return is_real && name.ends_with(kWeight) && tensor.rank() >= 2 && tensor.numel() != 0;
}

// What adapters know. What is transposed on the way must be decoded, which it is when it is compared anyway.
Checkpoint with_names_of_peft(const Checkpoint& checkpoint, const NameOptions& options) {
  if (!has_gguf_names(checkpoint)) return checkpoint;
  if (names::find_architecture(checkpoint, options) == nullptr) {
    throw Error(Errc::unsupported, "a LoRA needs the names of Hugging Face, which are not known for this architecture")
        .in(checkpoint.target)
        .hint("name one whose names are known with --architecture; or convert both checkpoints from the originals");
  }
  return to_names(cast(checkpoint, DType::f32), NameStyle::huggingface, options);
}

FromDiff extracted(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options) {
  FromDiff result;
  std::vector<Work> works;
  std::uint64_t total = 0;
  const PackedParts packed_base(base), packed_tuned(tuned);
  for (const auto& [name, tensor] : base) {
    if (!options.selection.matches(name)) continue;
    const Tensor* other = tuned.find(name);
    if (other == nullptr || other->shape() != tensor.shape()) {
      result.report.missing.emplace_back(name);
    } else if (holds_a_product(name, tensor) && !(base.format == Format::gguf && name.starts_with("blk."))) {
      packed_base.refuse(name, tensor, "subtracted");
      packed_tuned.refuse(name, *other, "subtracted from");
      works.push_back({name, &tensor, other});
      total += tensor.nbytes();
    } else if (is_same(tensor, *other)) {
      ++result.report.unchanged;
    } else {
      result.report.left.emplace_back(name);
    }
  }
  for (const auto& [name, tensor] : tuned) {
    if (!base.contains(name) && options.selection.matches(name)) result.report.missing.emplace_back(name);
  }

  std::vector<Done> done(works.size());
  ProgressMeter meter(options.progress, "extracting", total);
  const Extraction extraction(options);
  ThreadPool(options.threads).run(works.size(), [&](std::size_t i, unsigned) {
    done[i] = extraction.run(works[i]);
    meter.add(works[i].base->nbytes());
  });

  std::set<std::string> modules;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (done[i].is_changed) modules.emplace(Extraction::module_of(works[i].name));
  }
  result.adapter.config = config_of(base, options, modules);
  result.adapter.source = tuned.target;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!done[i].is_changed) {
      ++result.report.unchanged;
      continue;
    }
    const std::string module(Extraction::module_of(works[i].name));
    const bool embedding = is_lookup_table(module);
    const std::string stem = std::string(kPrefix) + module + (embedding ? ".lora_embedding_" : ".lora_");
    result.adapter.tensors.insert(stem + (embedding ? "A" : "A.weight"), std::move(done[i].a));
    result.adapter.tensors.insert(stem + (embedding ? "B" : "B.weight"), std::move(done[i].b));
    if (done[i].layer.rank != options.rank) note_smaller_rank(result.adapter.config, module, done[i].layer.rank);
    result.report.layers.push_back(std::move(done[i].layer));
  }
  if (result.report.layers.empty()) {
    throw Error(Errc::mismatch, "no matrix differs between the two checkpoints, so there is nothing to extract")
        .hint("ballast diff shows what does differ");
  }
  return result;
}

}  // namespace

FromDiff lora_from_diff(const Checkpoint& base, const Checkpoint& tuned, const FromDiffOptions& options) {
  if (options.rank == 0) throw Error(Errc::invalid_argument, "a LoRA has a rank of at least 1");
  return extracted(with_names_of_peft(base, options.names), with_names_of_peft(tuned, options.names), options);
}

}  // namespace ballast
