// VeRA, PVeRA and RandLoRA share random matrices among all modules, and learn how to scale them.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/drawn.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

Largest largest_module(const Task& task) {
  Largest largest;
  for (const Module& module : task.parts.modules) {
    const Extent sides = task.sides(module);
    largest.out = std::max(largest.out, sides.rows);
    largest.in = std::max(largest.in, sides.columns);
  }
  return largest;
}

struct Projections {
  std::function<Matrix()> a, b;  // [rank, in] and [out, rank]
};

// The matrices in the file or, if it has none, those that PEFT draws from the seed in the configuration.
Projections projections(const Task& task, const std::string& prefix, std::uint64_t a_rows, std::uint64_t rank) {
  const auto a = task.parts.shared.find(prefix + "_A"), b = task.parts.shared.find(prefix + "_B");
  if (a != task.parts.shared.end() && b != task.parts.shared.end()) {
    return {[tensor = a->second] { return read_matrix(tensor); }, [tensor = b->second] { return read_matrix(tensor); }};
  }
  const std::uint64_t seed = task.config.count("projection_prng_key", 0);
  const Largest largest = largest_module(task);
  const auto draw = [=] { return draw_projections(seed, a_rows, rank, largest); };
  return {[=] { return draw().a; }, [=] { return draw().b; }};
}

// W + (b * B[:out]) (d * A[:, :in]), with as many rows of A as B has columns.
void merge_projected(const Task& task, const std::string& prefix, const Tensor& d, std::uint64_t a_rows,
                     std::uint64_t rank) {
  const Tensor b = task.module.at(prefix + "_lambda_b");
  const std::uint64_t out = b.numel(), in = task.weight().numel() / std::max<std::uint64_t>(out, 1);
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
  if (task.config.is_set("sparse") || task.config.is_set("very_sparse"))
    throw Error(Errc::unsupported, "the sparse bases of this adapter were not saved")
        .hint("save the adapter again with save_projection=True");
  return [seed = task.config.count("projection_prng_key", 0), rank, largest = largest_module(task)] {
    return draw_bases(seed, rank, largest);
  };
}

}  // namespace

void merge_vera(const Task& task) {
  const Tensor& d = task.module.at("vera_lambda_d");
  merge_projected(task, "vera", d, d.numel(), d.numel());
}

// The second half of PVeRA's vector is a deviation: the merged weight is the mean.
void merge_pvera(const Task& task) {
  const Tensor& d = task.module.at("pvera_lambda_d");
  merge_projected(task, "pvera", d, d.numel(), d.numel() / 2);
}

// RandLoRA: W + s B' A', where A' is [rank, bases, smaller], each row of A times its lambda and gamma, and B' is
// [larger, bases, rank]. PEFT pairs the indices of both as they lie in memory, and so does this rule.
void merge_randlora(const Task& task) {
  const Tensor lambda = task.module.at("randlora_lambda"), gamma = task.module.at("randlora_gamma");
  const std::uint64_t rank = task.config.count("r", 32);
  const Extent whole = task.sides(task.module);
  const std::uint64_t smaller = std::min(whole.rows, whole.columns), larger = std::max(whole.rows, whole.columns);
  if (rank == 0 || smaller == 0)
    throw Error(Errc::mismatch, fmt::format("the adapter has a rank of {} for the module {}, whose weight is {} by {}",
                                            rank, quote(task.module.name), whole.rows, whole.columns))
        .hint("look at r in adapter_config.json");
  const std::uint64_t bases = smaller / rank + (smaller % rank != 0 ? 1 : 0);
  require_shape(task.module, "randlora_lambda", {rank, bases});
  require_shape(task.module, "randlora_gamma", {bases, smaller});
  const bool is_wide = smaller == whole.columns;  // PEFT's word if the inputs are the smaller side
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
      rank * bases, task.config.number("randlora_alpha", 640) / static_cast<double>(rank)};
  add_low_rank(task, fmt::format("RandLoRA of rank {}", rank), whole.rows, whole.columns, {task.weight().dtype()},
               std::move(low_rank));
}

}  // namespace ballast::peft
