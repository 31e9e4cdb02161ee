// Methods that share matrices among all modules, often drawn at random, and learn how to combine them: VeRA, PVeRA,
// RandLoRA, VB-LoRA, TinyLoRA.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text.hpp"
#include "kernels/torch_random.hpp"
#include "ops/merge/drawn.hpp"
#include "ops/merge/low_rank.hpp"
#include "ops/merge/model_order.hpp"
#include "ops/merge/rules.hpp"

namespace ballast::merging {
namespace {

Largest largest_module(const Task& task) {
  Largest largest;
  for (const Module& module : task.parts.modules) {
    const Tensor& weight = task.base.at(module.name + ".weight");
    Extent found = extent(weight.shape());
    if (task.settings.flag("fan_in_fan_out")) found = found.transposed();
    largest.out = std::max(largest.out, found.rows);
    largest.in = std::max(largest.in, found.columns);
  }
  return largest;
}

struct Projections {
  std::function<Matrix()> a, b;  // [rank, in] and [out, rank]
};

// Those in the file, or, where it has none, those that PEFT would draw from the seed in the configuration.
Projections projections(const Task& task, const std::string& prefix, std::uint64_t a_rows, std::uint64_t rank) {
  const auto a = task.parts.shared.find(prefix + "_A"), b = task.parts.shared.find(prefix + "_B");
  if (a != task.parts.shared.end() && b != task.parts.shared.end()) {
    return {[tensor = a->second] { return read_matrix(tensor); }, [tensor = b->second] { return read_matrix(tensor); }};
  }
  const std::uint64_t seed = task.settings.count("projection_prng_key");
  const Largest largest = largest_module(task);
  const auto draw = [=] { return draw_projections(seed, a_rows, rank, largest); };
  return {[=] { return draw().a; }, [=] { return draw().b; }};
}

// (b * B[:out]) (d * A[:, :in]), of as many rows of A as B has columns.
void merge_projected(const Task& task, const std::string& prefix, const Tensor& d, std::uint64_t a_rows,
                     std::uint64_t rank) {
  const Tensor b = task.module.at(prefix + "_lambda_b");
  const Tensor& weight = task.base.at(task.weight_name());
  const std::uint64_t out = b.numel(), in = weight.numel() / std::max<std::uint64_t>(out, 1);
  const Projections matrices = projections(task, prefix, a_rows, rank);
  LowRank low_rank{[=, name = task.module.name] {
                     const Matrix a = matrices.a(), large = matrices.b();
                     if (a.columns() < in || a.rows() < rank || large.rows() < out || large.columns() != rank)
                       throw Error(Errc::mismatch,
                                   fmt::format("the shared matrices of the adapter are too small for the "
                                               "module {}",
                                               quote(name)));
                     const std::vector<float> of_b = read_floats(b), of_d = read_floats(d);
                     Factors factors{Matrix({out, rank}), Matrix({rank, in})};
                     for (std::uint64_t i = 0; i < out; ++i) {
                       for (std::uint64_t j = 0; j < rank; ++j) factors.left(i, j) = of_b[i] * large(i, j);
                     }
                     for (std::uint64_t j = 0; j < rank; ++j) {
                       for (std::uint64_t k = 0; k < in; ++k) factors.right(j, k) = of_d[j] * a(j, k);
                     }
                     return factors;
                   },
                   rank};
  add_low_rank(task, fmt::format("VeRA of rank {}", rank), out, in, {b.dtype()}, std::move(low_rank));
}

// Values that softmax has made to sum up to 1, of the largest `count`.
struct Choice {
  std::vector<std::uint64_t> indices;
  std::vector<float> weights;
};
Choice choose(std::span<const float> logits, std::uint64_t count) {
  Choice choice;
  choice.indices.resize(logits.size());
  std::iota(choice.indices.begin(), choice.indices.end(), std::uint64_t{0});
  std::ranges::stable_sort(choice.indices, [&](auto a, auto b) { return logits[a] > logits[b]; });
  choice.indices.resize(std::min<std::uint64_t>(count, logits.size()));
  float sum = 0;
  for (const std::uint64_t i : choice.indices) {
    choice.weights.push_back(std::exp(logits[i] - logits[choice.indices.front()]));
    sum += choice.weights.back();
  }
  for (float& weight : choice.weights) weight /= sum;
  return choice;
}

// The choices of a module for each of its sub-vectors: computed from logits, or as they were saved, without the last
// weight, which is what is missing to 1.
std::vector<Choice> choices(const Module& module, const std::string& name, std::uint64_t count) {
  std::vector<Choice> result;
  if (const Tensor* logits = module.find(name)) {  // not empty, as merge_vblora() made sure
    const std::uint64_t vectors = logits->shape()[logits->rank() - 1];
    const Matrix values = read_matrix(*logits, {logits->numel() / vectors, vectors});
    for (std::uint64_t i = 0; i < values.rows(); ++i) result.push_back(choose(values.row(i), count));
    return result;
  }
  const Tensor indices = module.at(name + "_topk_indices").to(DType::f64);
  const std::vector<float> weights = read_floats(module.at(name + "_topk_weights"));
  std::vector<double> numbers(indices.numel());
  if (numbers.empty()) return result;
  indices.storage()->prepare({});
  indices.read(0, std::as_writable_bytes(std::span(numbers)));
  auto weight = weights.begin();
  for (std::size_t i = 0; i < numbers.size(); i += count) {
    Choice choice;
    for (std::size_t k = 0; k < count; ++k) {
      if (!(numbers[i + k] >= 0 && numbers[i + k] < 0x1p53))  // NaN, too
        throw Error(Errc::malformed, fmt::format("the adapter asks for vector {} for the module {}", numbers[i + k],
                                                 quote(module.name)));
      choice.indices.push_back(static_cast<std::uint64_t>(numbers[i + k]));
    }
    for (std::size_t k = 0; k + 1 < count; ++k) choice.weights.push_back(*weight++);
    choice.weights.push_back(1 - std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0F));
    result.push_back(std::move(choice));
  }
  return result;
}

// The shape of the logits of a module, or of the indices that were saved of them: what both must have for choices().
Shape shape_of_choices(const Module& module, const std::string& name, std::uint64_t topk) {
  const Tensor* logits = module.find(name);
  Shape shape = logits != nullptr ? logits->shape() : module.at(name + "_topk_indices").shape();
  if (shape.rank() != 3 || shape[2] == 0)
    throw Error(Errc::mismatch, fmt::format("{} of the module {} has the shape {}, which chooses no vectors", name,
                                            quote(module.name), to_string(shape)))
        .hint("was the file saved whole?");
  if (logits != nullptr) return shape;
  require_shape(module, name + "_topk_indices", {shape[0], shape[1], topk});
  require_shape(module, name + "_topk_weights", {shape[0], shape[1], topk - 1});
  return shape;
}

std::vector<float> combined(const Choice& choice, const Matrix& bank) {
  std::vector<float> result(bank.columns());
  for (std::size_t k = 0; k < choice.indices.size(); ++k) {
    if (choice.indices[k] >= bank.rows())
      throw Error(Errc::malformed, fmt::format("the adapter asks for vector {} of {}", choice.indices[k], bank.rows()));
    const auto vector = bank.row(choice.indices[k]);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += choice.weights[k] * vector[i];
  }
  return result;
}

std::function<RandomBases()> random_bases(const Task& task, std::uint64_t rank) {
  const auto find = [&](const std::string& name) -> const Tensor* {
    if (const Tensor* own = task.module.find(name)) return own;
    const auto shared = task.parts.shared.find(name);
    return shared == task.parts.shared.end() ? nullptr : &shared->second;
  };
  const Tensor *a = find("randlora_A"), *b = find("randlora_B");
  if (a != nullptr && b != nullptr) {
    if (a->rank() != 3 || b->rank() != 3 || a->numel() == 0 || b->numel() == 0 || a->shape()[0] != rank ||
        a->shape()[1] != 1 || b->shape()[2] != rank)
      throw Error(Errc::mismatch,
                  fmt::format("the bases of the module {} have the shapes {} and {}, which a rank of {} "
                              "does not go with",
                              quote(task.module.name), to_string(a->shape()), to_string(b->shape()), rank));
    return [a = *a, b = *b] { return RandomBases{read_floats(a), read_floats(b), a.shape()[2], b.shape()[1]}; };
  }
  if (task.settings.flag("sparse") || task.settings.flag("very_sparse"))
    throw Error(Errc::unsupported, "the sparse bases of this adapter were not saved")
        .hint("save it again with save_projection=True");
  return [seed = task.settings.count("projection_prng_key"), rank, largest = largest_module(task)] {
    return draw_bases(seed, rank, largest);
  };
}

}  // namespace

void merge_vera(const Task& task) {
  const Tensor& d = task.module.at("vera_lambda_d");
  merge_projected(task, "vera", d, d.numel(), d.numel());
}

// PVeRA has a second half, which is a deviation: the merged weight is the mean.
void merge_pvera(const Task& task) {
  const Tensor& d = task.module.at("pvera_lambda_d");
  merge_projected(task, "pvera", d, d.numel(), d.numel() / 2);
}

// RandLoRA: W + s B' A', where A' is [rank, bases, smaller], each row of A times its lambda and gamma, and B' is
// [larger, bases, rank]. PEFT pairs the indices of both as they lie in memory, and so do we.
void merge_randlora(const Task& task) {
  const Tensor lambda = task.module.at("randlora_lambda"), gamma = task.module.at("randlora_gamma");
  const std::uint64_t rank = task.settings.count("r");
  Extent whole = extent(task.base.at(task.weight_name()).shape());
  if (task.settings.flag("fan_in_fan_out")) whole = whole.transposed();
  const std::uint64_t smaller = std::min(whole.rows, whole.columns), larger = std::max(whole.rows, whole.columns);
  if (rank == 0 || smaller == 0)
    throw Error(Errc::mismatch, fmt::format("the adapter has a rank of {} for the module {}, whose weight is {} by {}",
                                            rank, quote(task.module.name), whole.rows, whole.columns))
        .hint("look at r in adapter_config.json");
  const std::uint64_t bases = smaller / rank + (smaller % rank != 0 ? 1 : 0);
  require_shape(task.module, "randlora_lambda", {rank, bases});
  require_shape(task.module, "randlora_gamma", {bases, smaller});
  const bool is_wide = smaller == whole.columns;  // as PEFT says it: the inputs are the smaller side
  LowRank low_rank{
      [=, make = random_bases(task, rank), name = task.module.name] {
        const RandomBases random = make();
        if (random.smaller < smaller || random.bases < bases || random.b.size() / rank / random.bases < larger)
          throw Error(Errc::mismatch,
                      fmt::format("the bases of the adapter are too small for the module {}", quote(name)));
        const Matrix by_rank = read_matrix(lambda), by_input = read_matrix(gamma);
        Matrix a({rank * bases, smaller}), b({larger, bases * rank});
        for (std::uint64_t i = 0; i < rank * bases; ++i) {
          for (std::uint64_t j = 0; j < smaller; ++j)
            a(i, j) = by_rank(i / bases, i % bases) * random.a[i / bases * random.smaller + j] * by_input(i % bases, j);
        }
        for (std::uint64_t i = 0; i < larger; ++i)
          std::copy_n(&random.b[i * random.bases * rank], bases * rank, b.row(i).begin());
        return is_wide ? Factors{std::move(b), std::move(a)} : Factors{transposed(a), transposed(b)};
      },
      rank * bases, task.settings.number("randlora_alpha") / static_cast<double>(rank)};
  add_low_rank(task, fmt::format("RandLoRA of rank {}", rank), whole.rows, whole.columns,
               {task.base.at(task.weight_name()).dtype()}, std::move(low_rank));
}

// VB-LoRA: LoRA whose matrices are put together from vectors of one bank.
void merge_vblora(const Task& task) {
  const Tensor bank = task.shared("vblora_vector_bank");
  const std::uint64_t topk = task.settings.count("topk"), rank = task.settings.count("r");
  const std::uint64_t length = extent(bank.shape()).columns;
  if (bank.numel() == 0)
    throw Error(Errc::mismatch, "vblora_vector_bank has no vectors").hint("was the file saved whole?");
  if (topk == 0)
    throw Error(Errc::malformed,
                "the field \"topk\" of the adapter's configuration is 0, so that it chooses no vectors")
        .hint("is this the adapter_config.json that the tensors were saved with?");
  const Shape of_a = shape_of_choices(task.module, "vblora_logits_A", topk);
  const Shape of_b = shape_of_choices(task.module, "vblora_logits_B", topk);
  if (of_a[0] != rank || of_b[1] != rank)
    throw Error(Errc::mismatch, fmt::format("the rank of the module {} is {} in the configuration, but its logits have "
                                            "the shapes {} and {}",
                                            quote(task.module.name), rank, to_string(of_a), to_string(of_b)));
  const std::uint64_t out = of_b[0] * length, in = of_a[1] * length;
  LowRank low_rank{[=, module = task.module] {
                     const Matrix vectors = read_matrix(bank);
                     const auto a = choices(module, "vblora_logits_A", topk);
                     const auto b = choices(module, "vblora_logits_B", topk);
                     Factors factors{Matrix({out, rank}), Matrix({rank, in})};
                     for (std::size_t i = 0; i < a.size(); ++i)
                       std::ranges::copy(combined(a[i], vectors), &factors.right.values()[i * length]);
                     for (std::size_t i = 0; i < b.size(); ++i) {
                       const auto vector = combined(b[i], vectors);
                       for (std::uint64_t k = 0; k < length; ++k)
                         factors.left(i / rank * length + k, i % rank) = vector[k];
                     }
                     return factors;
                   },
                   rank};
  add_low_rank(task, fmt::format("VB-LoRA of rank {}", rank), out, in, {}, std::move(low_rank));
}

// TinyLoRA: W + B R A, where R = sum of v[i] P[i]. Modules share v in groups, in the order of the model; where P was
// not saved, the number of the module there is a part of its seed.
void merge_tinylora(const Task& task) {
  const Tensor a = task.module.at("tinylora_A"), b = task.module.at("tinylora_B");
  const std::uint64_t rank = extent(a.shape()).rows, modules = task.parts.modules.size();
  require_shape(task.module, "tinylora_B", {extent(b.shape()).rows, rank});
  const auto self = static_cast<std::size_t>(&task.module - task.parts.modules.data());
  const std::vector<std::size_t> order = model_order(task.parts.modules);
  const auto number = static_cast<std::uint64_t>(std::ranges::find(order, self) - order.begin());
  const double free = static_cast<double>(modules) * (1 - task.settings.number("weight_tying", 0));
  const auto groups = static_cast<std::uint64_t>(std::clamp(std::nearbyint(free), 1.0, static_cast<double>(modules)));
  const std::uint64_t group = std::min(number / std::max<std::uint64_t>(modules / groups, 1), groups - 1);
  const Tensor v = task.shared("tinylora_v." + std::to_string(group));
  const std::uint64_t count = v.numel();
  const bool is_saved = task.module.find("tinylora_P") != nullptr;
  if (is_saved) require_shape(task.module, "tinylora_P", {count, rank, rank});
  const Tensor p = is_saved ? task.module.at("tinylora_P") : Tensor();
  const std::uint64_t seed = task.settings.count("projection_seed", 42) + number;
  LowRank low_rank{[=] {
                     Matrix matrices({count, rank * rank});
                     if (is_saved) {
                       matrices = read_matrix(p, {count, rank * rank});
                     } else {
                       const double deviation = 1 / std::sqrt(static_cast<double>(rank));
                       kernels::TorchRandom(seed).normal(0, static_cast<float>(deviation), matrices.values());
                     }
                     const std::vector<float> weights = read_floats(v);
                     Matrix sum({rank, rank});
                     for (std::uint64_t i = 0; i < count; ++i) {
                       for (std::uint64_t k = 0; k < rank * rank; ++k) sum.values()[k] += weights[i] * matrices(i, k);
                     }
                     return Factors{product(read_matrix(b), sum), read_matrix(a)};
                   },
                   rank};
  add_low_rank(task, fmt::format("TinyLoRA of rank {}", rank), extent(b.shape()).rows, extent(a.shape()).columns,
               {a.dtype()}, std::move(low_rank));
}

}  // namespace ballast::merging
