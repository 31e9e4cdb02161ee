// UniLoRA: LoRA whose matrices are all drawn from one short vector, each of its elements as often as the others.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "ops/merge/drawn.hpp"
#include "ops/merge/low_rank.hpp"
#include "ops/merge/model_order.hpp"
#include "ops/merge/rules.hpp"

namespace ballast::merging {
namespace {

// The values of a matrix: each element of the vector, over the root of how often it is used.
std::vector<float> gather(std::span<const float> theta, std::span<const std::uint64_t> indices,
                          std::span<const std::uint64_t> counts) {
  std::vector<float> values;
  for (const std::uint64_t i : indices) values.push_back(theta[i] * (1 / std::sqrt(static_cast<float>(counts[i]))));
  return values;
}

Extent extent_of(const Task& task, const Module& module) {
  const Extent whole = extent(task.base.at(module.name + ".weight").shape());
  return task.settings.flag("fan_in_fan_out") ? whole.transposed() : whole;
}

LowRank drawn(const Task& task, const Tensor& theta, std::uint64_t rank) {
  for (const std::string_view field : {"layers_to_transform", "exclude_modules", "modules_to_save"}) {
    if (task.settings.find(field) != nullptr)
      throw Error(Errc::unsupported,
                  fmt::format("the adapter's indices were not saved, and with {} it is not known for which "
                              "modules they were drawn",
                              field))
          .hint("save the adapter with save_indices=True");
  }
  std::uint64_t elements = 0, first = 0;
  for (const std::size_t i : model_order(task.parts.modules)) {
    const Module& module = task.parts.modules[i];
    const Extent whole = extent_of(task, module);
    if (&module == &task.module) first = elements;
    const std::uint64_t own = fits(checked_mul(whole.rows + whole.columns, rank), "the size of an adapter");
    elements = fits(checked_add(elements, own), "the size of an adapter");
  }
  const std::uint64_t length = theta.numel(), seed = task.settings.count("proj_seed", 42);
  if (length == 0 || elements >= UINT32_MAX)
    throw Error(Errc::unsupported, fmt::format("{} elements cannot be drawn from {}", elements, length));
  const Extent whole = extent_of(task, task.module);
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

// As they were saved: an index and a scale for each element.
LowRank saved(const Task& task, const Tensor& theta, std::uint64_t rank) {
  return {[theta, module = task.module] {
            const std::vector<float> values = read_floats(theta);
            const auto matrix = [&](const std::string& which) {
              const Tensor& indices = module.at("unilora_indices_" + which);
              Matrix result = read_matrix(module.at("unilora_scales_" + which));
              std::vector<double> numbers(indices.numel());
              if (numbers.empty()) return result;
              const Tensor wide = indices.to(DType::f64);
              wide.storage()->prepare({});
              wide.read(0, std::as_writable_bytes(std::span(numbers)));
              for (std::size_t i = 0; i < numbers.size(); ++i) {
                if (!(numbers[i] >= 0 && numbers[i] < static_cast<double>(values.size())))
                  throw Error(Errc::malformed,
                              fmt::format("the adapter asks for element {} of {}", numbers[i], values.size()));
                result.values()[i] *= values[static_cast<std::size_t>(numbers[i])];
              }
              return result;
            };
            return Factors{matrix("B"), matrix("A")};
          },
          rank};
}

}  // namespace

void merge_unilora(const Task& task) {
  const Tensor& theta = task.shared("unilora_theta_d");
  const std::uint64_t rank = task.settings.count("r");
  const Extent whole = extent_of(task, task.module);
  const bool is_saved = task.module.find("unilora_indices_A") != nullptr;
  if (is_saved) {
    for (const std::string kind : {"unilora_indices_", "unilora_scales_"}) {
      require_shape(task.module, kind + "A", {rank, whole.columns});
      require_shape(task.module, kind + "B", {whole.rows, rank});
    }
  }
  add_low_rank(task, fmt::format("UniLoRA of rank {}", rank), whole.rows, whole.columns, {theta.dtype()},
               is_saved ? saved(task, theta, rank) : drawn(task, theta, rank));
}

}  // namespace ballast::merging
