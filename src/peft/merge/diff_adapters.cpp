#include <ballast/diff_adapters.hpp>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "inspect/diff_summary.hpp"
#include "peft/matrix.hpp"
#include "peft/merge/module.hpp"
#include "peft/scaling.hpp"
#include "peft/types.hpp"

namespace ballast {
namespace peft {
namespace {

constexpr std::uint64_t kMostRank = 1024;  // the work grows with its square

// What a LoRA adds to one weight: scaling * b * a.
struct Update {
  Tensor a, b;  // [rank, in] and [out, rank]
  Shape shape;  // of the weight
  double scaling = 1;

  std::uint64_t rank() const { return extent(a.shape()).rows; }
  std::uint64_t count() const { return fits(shape.numel(), "the size of a weight"); }
};

struct Side {
  std::map<std::string, Update, std::less<>> updates;  // by the names of weights
  Checkpoint tensors;                                  // that are compared as they are
};

// [out, in] and the kernel of a convolution, which A has.
Shape shape_of_weight(const Tensor& a, const Tensor& b, bool is_embedding) {
  std::vector<std::uint64_t> dims = {b.shape()[0]};
  for (std::size_t i = 1; i < a.rank(); ++i) dims.push_back(a.shape()[i]);
  if (is_embedding) std::swap(dims.front(), dims.back());
  return Shape(dims);
}

Update update_of(const Module& module, const Tensor& a, const Tensor& b, const AdapterConfig& config,
                 bool is_embedding) {
  const bool fits = a.rank() >= 2 && b.rank() >= 2 && b.shape()[1] == a.shape()[0];
  if (!fits)
    throw Error(Errc::mismatch, fmt::format("the matrices of {} do not fit each other: {} and {}", quote(module.name),
                                            to_string(a.shape()), to_string(b.shape())));
  if (a.shape()[0] > kMostRank)
    throw Error(Errc::unsupported, fmt::format("the rank of {} is {}, more than the {} that are compared",
                                               quote(module.name), a.shape()[0], kMostRank));
  return {a, b, shape_of_weight(a, b, is_embedding), scaling_at(config, module.name)};
}

Side side_of(const Adapter& adapter) {
  const PeftType& type = peft_type(adapter.config);
  if (type.name != "LORA")
    throw Error(Errc::unsupported,
                fmt::format("{} is an adapter of the type {}, not a LoRA", quote(adapter.source), type.name));
  Side side;
  Parts parts = take_apart(adapter, type);
  for (const Module& module : parts.modules) {
    const Tensor *a = module.find("lora_A.weight"), *b = module.find("lora_B.weight");
    const bool is_embedding = a == nullptr && b == nullptr;
    if (is_embedding) {
      a = module.find("lora_embedding_A");
      b = module.find("lora_embedding_B");
    }
    const bool is_update = a != nullptr && b != nullptr;
    // One matrix alone adds nothing, and is no tensor of the base either: there is nothing to compare it with.
    if (!is_update && a != b)
      throw Error(Errc::mismatch,
                  fmt::format("{} of {} has only one of its two matrices", quote(module.name), quote(adapter.source)));
    if (is_update)
      side.updates.emplace(module.name + ".weight", update_of(module, *a, *b, adapter.config, is_embedding));
    for (const auto& [part, tensor] : module.parts) {
      if (!is_update || (&tensor != a && &tensor != b)) side.tensors.tensors.insert(module.name + "." + part, tensor);
    }
  }
  for (const auto& [name, tensor] : parts.replaced) side.tensors.tensors.insert(name, tensor);
  for (const auto& [name, tensor] : parts.tokens) side.tensors.tensors.insert(name, tensor);
  return side;
}

// The products of every row of one matrix with every row of another, as [rows of left][rows of right]. The inner loop
// goes along a row of `right`, transposed, so that the compiler can make vectors of it.
std::vector<double> row_products(const Matrix& left, const Matrix& right) {
  std::vector<double> sums(left.rows() * right.rows());
  for (std::uint64_t column = 0; column < left.columns(); ++column) {
    for (std::uint64_t i = 0; i < left.rows(); ++i) {
      const double value = left(i, column);
      for (std::uint64_t j = 0; j < right.rows(); ++j)
        sums[i * right.rows() + j] += value * static_cast<double>(right(j, column));
    }
  }
  return sums;
}

// A and B of an update, each with a row for each rank.
struct HalvesOfUpdate {
  Matrix a, b;
};

HalvesOfUpdate read(const Update& update) {
  const Extent of_b{update.b.shape()[0], update.rank()};
  return {read_matrix(update.a), transposed(read_matrix(update.b, of_b))};
}

// The sum of the products of all elements of both updates, without their scalings: tr((B1ᵀB2)ᵀ(A1A2ᵀ)).
double inner_product(const HalvesOfUpdate& left, const HalvesOfUpdate& right) {
  const auto of_a = row_products(left.a, right.a), of_b = row_products(left.b, right.b);
  double sum = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) sum += of_a[i] * of_b[i];
  return sum;
}

DiffReport::Numbers compare(const Update& a, const Update& b) {
  const HalvesOfUpdate left = read(a), right = read(b);
  const double squares_a = a.scaling * a.scaling * inner_product(left, left);
  const double squares_b = b.scaling * b.scaling * inner_product(right, right);
  const double product = a.scaling * b.scaling * inner_product(left, right);
  constexpr double kSmallest = 1e-12;  // what rounding leaves of a difference that is none
  double squares = squares_a + squares_b - 2 * product;
  if (squares <= kSmallest * (squares_a + squares_b)) squares = 0;
  DiffReport::Numbers numbers;
  numbers.count = a.count();
  numbers.norm_a = std::sqrt(std::max(0.0, squares_a));
  numbers.norm_b = std::sqrt(std::max(0.0, squares_b));
  numbers.norm_change = std::sqrt(squares);
  numbers.product = product;
  return numbers;
}

// The weights, as tensors without data, before all other tensors.
Checkpoint with_weights(const Side& side) {
  Checkpoint checkpoint;
  for (const auto& [name, update] : side.updates) {
    const std::uint64_t bytes = fits(checked_mul(update.count(), sizeof(float)), "the size of " + quote(name));
    checkpoint.tensors.insert(name, Tensor(DType::f32, update.shape, meta_storage(bytes)));
  }
  for (const auto& [name, tensor] : side.tensors) {
    if (!checkpoint.contains(name)) checkpoint.tensors.insert(name, tensor);
  }
  return checkpoint;
}

// The weights that both sides change, compared.
void compare_updates(const Side& a, const Side& b, const DiffOptions& options, DiffReport& report) {
  std::vector<DiffReport::Change> changes;
  std::vector<std::pair<const Update*, const Update*>> pairs;
  for (const auto& [name, update] : a.updates) {
    const auto other = b.updates.find(name);
    if (other == b.updates.end()) {
      report.only_in_a.push_back(name);
      continue;
    }
    const bool is_one_shape = update.shape == other->second.shape;
    using What = DiffReport::What;
    DiffReport::Change change{
        name, is_one_shape ? What::values : What::shape, DType::f32, DType::f32, update.shape, other->second.shape};
    if (is_one_shape && options.values)
      pairs.emplace_back(&update, &other->second);
    else if (is_one_shape)
      ++report.equal_count;
    else
      report.changed.push_back(change);
    if (is_one_shape && options.values) changes.push_back(std::move(change));
  }
  for (const auto& [name, update] : b.updates) {
    if (!a.updates.contains(name)) report.only_in_b.push_back(name);
  }
  std::vector<DiffReport::Numbers> numbers(pairs.size());
  ThreadPool(options.threads).run(pairs.size(), [&](std::size_t i, unsigned) {
    numbers[i] = compare(*pairs[i].first, *pairs[i].second);
  });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (numbers[i].norm_change == 0) {
      ++report.equal_count;
      continue;
    }
    changes[i].compared = changes[i].different = numbers[i].count;
    changes[i].numbers = numbers[i];
    report.changed.push_back(std::move(changes[i]));
  }
}

}  // namespace
}  // namespace peft

AdapterComparison diff_adapters(const Adapter& a, const Adapter& b, const DiffOptions& options) {
  const peft::Side left = peft::side_of(a), right = peft::side_of(b);
  AdapterComparison result{peft::with_weights(left), peft::with_weights(right), {}};
  peft::compare_updates(left, right, options, result.report);
  DiffReport others = diff(left.tensors, right.tensors, options);
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(result.report.only_in_a, others.only_in_a);
  append(result.report.only_in_b, others.only_in_b);
  append(result.report.changed, others.changed);
  result.report.equal_count += others.equal_count;
  summarize_changes(result.report, result.a, result.b);
  return result;
}

}  // namespace ballast
