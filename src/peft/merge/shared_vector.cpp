// UniLoRA and TinyLoRA: LoRA whose matrices come from a short vector that modules share, in the order of the model.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "kernels/linear/torch_random.hpp"
#include "peft/merge/drawn.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/model_order.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

// The values of a matrix: elements of the vector, each divided by the root of the number of its uses.
std::vector<float> gather(std::span<const float> theta, std::span<const std::uint64_t> indices,
                          std::span<const std::uint64_t> counts) {
  std::vector<float> values;
  for (const std::uint64_t i : indices) values.push_back(theta[i] * (1 / std::sqrt(static_cast<float>(counts[i]))));
  return values;
}

// The matrices as PEFT draws them: each element of the vector as often as the others.
LowRank drawn_matrices(const Task& task, const Tensor& theta, std::uint64_t rank) {
  for (const std::string_view field : {"layers_to_transform", "exclude_modules", "modules_to_save"}) {
    if (task.config.find(field) != nullptr)
      throw Error(Errc::unsupported,
                  fmt::format("the adapter's indices were not saved, and with {} it is not known for which "
                              "modules they were drawn",
                              field))
          .hint("save the adapter with save_indices=True");
  }
  std::uint64_t elements = 0, first = 0;
  for (const std::size_t i : model_order(task.parts.modules)) {
    const Module& module = task.parts.modules[i];
    const Extent whole = task.sides(module);
    if (&module == &task.module) first = elements;
    const std::uint64_t own = fits(checked_mul(whole.rows + whole.columns, rank), "the size of an adapter");
    elements = fits(checked_add(elements, own), "the size of an adapter");
  }
  const std::uint64_t length = theta.numel(), seed = task.config.count("proj_seed", 42);
  if (length == 0 || elements >= UINT32_MAX)
    throw Error(Errc::unsupported, fmt::format("{} elements cannot be drawn from {}", elements, length));
  const Extent whole = task.sides(task.module);
  return {[=] {
            const std::vector<std::uint64_t> all = draw_indices(seed, elements, length);
            std::vector<std::uint64_t> counts(length);
            for (const std::uint64_t i : all) ++counts[i];
            const std::vector<float> values = read_floats(theta);
            const auto indices = std::span(all).subspan(first, (whole.rows + whole.columns) * rank);
            return Factors{Matrix({whole.rows, rank}, gather(values, indices.subspan(rank * whole.columns), counts)),
                           Matrix({rank, whole.columns}, gather(values, indices.first(rank * whole.columns), counts))};
          },
          rank};
}

// The matrices as they were saved: an index and a scale for each element.
LowRank saved_matrices(const Task& task, const Tensor& theta, std::uint64_t rank) {
  return {[theta, module = task.module] {
            const std::vector<float> values = read_floats(theta);
            const auto matrix = [&](const std::string& which) {
              Matrix result = read_matrix(module.at("unilora_scales_" + which));
              const std::string name = "unilora_indices_" + which;
              const std::vector<std::uint64_t> indices = read_indices(module.at(name), values.size(), name);
              for (std::size_t i = 0; i < indices.size(); ++i) result.values()[i] *= values[indices[i]];
              return result;
            };
            return Factors{matrix("B"), matrix("A")};
          },
          rank};
}

}  // namespace

// UniLoRA: W + B A, whose elements are all taken from one vector.
void merge_unilora(const Task& task) {
  const Tensor& theta = task.shared("unilora_theta_d");
  const std::uint64_t rank = task.config.count("r", 4);
  const Extent whole = task.sides(task.module);
  const bool is_saved = task.module.find("unilora_indices_A") != nullptr;
  if (is_saved) {
    for (const std::string kind : {"unilora_indices_", "unilora_scales_"}) {
      require_shape(task.module, kind + "A", {rank, whole.columns});
      require_shape(task.module, kind + "B", {whole.rows, rank});
    }
  }
  add_low_rank(task, fmt::format("UniLoRA of rank {}", rank), whole.rows, whole.columns, {theta.dtype()},
               is_saved ? saved_matrices(task, theta, rank) : drawn_matrices(task, theta, rank));
}

// TinyLoRA: W + B R A, with R = sum of v[i] P[i]. Modules share v in groups, in the order of the model. If P was not
// saved, its seed depends on the number of the module in that order.
void merge_tinylora(const Task& task) {
  const Tensor a = task.module.at("tinylora_A"), b = task.module.at("tinylora_B");
  const std::uint64_t rank = extent(a.shape()).rows, modules = task.parts.modules.size();
  require_shape(task.module, "tinylora_B", {extent(b.shape()).rows, rank});
  const auto self = static_cast<std::size_t>(&task.module - task.parts.modules.data());
  const std::vector<std::size_t> order = model_order(task.parts.modules);
  const auto number = static_cast<std::uint64_t>(std::ranges::find(order, self) - order.begin());
  const double free = static_cast<double>(modules) * (1 - task.config.number("weight_tying", 0));
  const auto groups = static_cast<std::uint64_t>(std::clamp(std::nearbyint(free), 1.0, static_cast<double>(modules)));
  const std::uint64_t group = std::min(number / std::max<std::uint64_t>(modules / groups, 1), groups - 1);
  const Tensor v = task.shared("tinylora_v." + std::to_string(group));
  const std::uint64_t count = v.numel();
  const bool is_saved = task.module.find("tinylora_P") != nullptr;
  if (is_saved) require_shape(task.module, "tinylora_P", {count, rank, rank});
  const Tensor p = is_saved ? task.module.at("tinylora_P") : Tensor();
  const std::uint64_t seed = task.config.count("projection_seed", 42) + number;
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

}  // namespace ballast::peft
