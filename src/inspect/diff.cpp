#include <ballast/diff.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "checkpoint/quantization/packed_parts.hpp"
#include "inspect/change_rank.hpp"
#include "inspect/compare_pairs.hpp"
#include "inspect/diff_summary.hpp"

namespace ballast {
namespace {

using What = DiffReport::What;

bool are_same_bytes(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.is_contiguous() && b.is_contiguous();
}

bool has_blocks(const Tensor& tensor) { return info(tensor.dtype()).kind == DTypeKind::ggml; }

// The index of element `at` of the contiguous form.
std::vector<std::uint64_t> index_of(std::uint64_t at, const Shape& shape) {
  std::vector<std::uint64_t> index(shape.rank());
  for (std::size_t i = shape.rank(); i-- > 0;) {
    index[i] = at % shape[i];
    at /= shape[i];
  }
  return index;
}

// What is about numbers in a comparison, and not about bits.
void put_numbers(DiffReport::Change& change, const kernels::Difference& difference) {
  const kernels::PairSums& sums = difference.sums;
  change.numbers = DiffReport::Numbers{difference.finite_count, std::sqrt(sums.squares_a), std::sqrt(sums.squares_b),
                                       std::sqrt(sums.squares), sums.products};
  change.max_abs = difference.max_abs;
  change.max_rel = difference.max_rel;
  change.nan_mismatch = difference.nan_mismatch;
  if (difference.max_at) change.max_at = index_of(*difference.max_at, change.shape_a);
}

// Compares two checkpoints in the order of the first.
class Comparison {
 public:
  Comparison(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options)
      : a_(a), b_(b), packed_a_(a), packed_b_(b), options_(options), close_{options.tolerance, options.rtol} {}

  DiffReport run() {
    for (std::size_t i = 0; i < a_.size(); ++i) look_at_pair(i);
    for (const auto& [name, tensor] : b_) {
      if (!a_.contains(name)) report_.only_in_b.emplace_back(name);
    }
    compare_values();
    compare_blocks();
    std::ranges::sort(changes_, {}, &Numbered::number);
    for (Numbered& numbered : changes_) report_.changed.push_back(std::move(numbered.change));
    if (options_.ranks) find_ranks(report_.changed, a_, b_, options_);
    summarize_changes(report_, a_, b_);
    return std::move(report_);
  }

 private:
  struct Numbered {
    std::size_t number;  // of the tensor in A
    DiffReport::Change change;
  };

  void look_at_pair(std::size_t number) {
    const auto& [name, tensor] = a_.tensors[number];
    const Tensor* other = b_.find(name);
    if (other == nullptr) {
      report_.only_in_a.emplace_back(name);
      return;
    }
    if (tensor.shape() != other->shape()) return add_change(number, What::shape);
    const bool is_changed = is_dtype_change(tensor, *other);
    if (!has_values_to_compare(tensor, *other)) return is_changed ? add_change(number, What::dtype) : add_equal();
    if (tensor.has_data() != other->has_data()) return add_change(number, is_changed ? What::dtype : What::data);

    const TensorPair pair = comparable({name, tensor, *other});
    if (pair.a.dtype() != pair.b.dtype()) return add_change(number, What::dtype);  // one side has no numbers
    pairs_.push_back(pair);
    numbers_.push_back(number);
  }

  bool is_dtype_change(const Tensor& a, const Tensor& b) const {
    return a.dtype() != b.dtype() && !options_.ignore_dtype;
  }

  bool has_values_to_compare(const Tensor& a, const Tensor& b) const {
    if (!options_.values || a.numel() == 0) return false;
    return (a.has_data() || b.has_data()) && !(a.dtype() == b.dtype() && are_same_bytes(a, b));
  }

  // Blocks have bits, but no distance: with a tolerance, the values that they stand for are compared.
  TensorPair comparable(const TensorPair& pair) const {
    const bool is_one_dtype = pair.a.dtype() == pair.b.dtype();
    return is_one_dtype && (close_.is_exact() || !has_blocks(pair.a)) ? pair : as_numbers(pair);
  }

  void add_equal() { ++report_.equal_count; }

  void add_change(std::size_t number, What what) {
    const auto& [name, a] = a_.tensors[number];
    const Tensor& b = b_.at(name);
    changes_.push_back({number, {std::string(name), what, a.dtype(), b.dtype(), a.shape(), b.shape()}});
  }

  void compare_values() {
    const auto differences = compare_pairs(pairs_, close_, options_);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto& [name, a] = a_.tensors[numbers_[i]];
      const bool is_changed = is_dtype_change(a, b_.at(name));
      if (differences[i].equal() && !is_changed) {
        add_equal();
        continue;
      }
      // Parts that are equal are equal weights; the numbers in others are no weights.
      packed_a_.refuse(name, a, "compared by value");
      packed_b_.refuse(name, b_.at(name), "compared by value");
      add_change(numbers_[i], is_changed ? What::dtype : What::values);
      DiffReport::Change& change = changes_.back().change;
      change.compared = differences[i].count;
      change.different = differences[i].different;
      if (kernels::has_numbers(pairs_[i].a.dtype())) put_numbers(change, differences[i]);
      if (has_blocks(pairs_[i].a)) with_blocks_.push_back(changes_.size() - 1);
    }
  }

  // Blocks were compared by their bits. Those that differ stand for numbers.
  void compare_blocks() {
    std::vector<TensorPair> pairs;
    for (const std::size_t i : with_blocks_) {
      const auto& [name, a] = a_.tensors[changes_[i].number];
      pairs.push_back(as_numbers({name, a, b_.at(name)}));
    }
    const auto differences = compare_pairs(pairs, {}, options_);
    for (std::size_t i = 0; i < pairs.size(); ++i) put_numbers(changes_[with_blocks_[i]].change, differences[i]);
  }

  const Checkpoint &a_, &b_;
  const PackedParts packed_a_, packed_b_;
  const DiffOptions& options_;
  const kernels::Closeness close_;
  std::vector<TensorPair> pairs_;     // to be compared
  std::vector<std::size_t> numbers_;  // of these in A
  std::vector<Numbered> changes_;
  std::vector<std::size_t> with_blocks_;  // of these, those whose bits were compared
  DiffReport report_;
};

}  // namespace

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options) {
  return Comparison(a, b, options).run();
}

}  // namespace ballast
