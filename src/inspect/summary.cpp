#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/name_hash.hpp"
#include "inspect/pattern.hpp"
#include "inspect/tensor_ranges.hpp"
#include "tensor/element_layout.hpp"

namespace ballast {
namespace {

struct PatternHash {
  std::size_t operator()(const Summary::Pattern& pattern) const noexcept {
    std::uint64_t hash = hash_name(pattern.name) + static_cast<std::uint64_t>(pattern.dtype);
    for (const std::uint64_t dimension : pattern.shape) hash = (hash ^ dimension) * 0x9E37'79B9'7F4A'7C15;
    return hash;
  }
};

struct SamePattern {
  bool operator()(const Summary::Pattern& a, const Summary::Pattern& b) const noexcept {
    return a.dtype == b.dtype && a.shape == b.shape && a.name == b.name;
  }
};

std::vector<Summary::Pattern> find_patterns(const Checkpoint& checkpoint) {
  struct Totals {
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::unordered_map<Summary::Pattern, Totals, PatternHash, SamePattern> groups;
  Summary::Pattern pattern{};
  for (const auto& [name, tensor] : checkpoint) {
    assign_pattern(pattern.name, name);
    pattern.dtype = tensor.dtype();
    pattern.shape = tensor.shape();
    Totals& group = groups.try_emplace(pattern).first->second;
    ++group.tensors;
    group.bytes += tensor.nbytes();
  }
  std::vector<Summary::Pattern> patterns;
  patterns.reserve(groups.size());
  for (const auto& [key, totals] : groups) {
    patterns.push_back(key);
    patterns.back().tensors = totals.tensors;
    patterns.back().bytes = totals.bytes;
  }
  std::ranges::sort(patterns, [](const Summary::Pattern& a, const Summary::Pattern& b) {
    if (a.name != b.name) return natural_less(a.name, b.name);
    return a.dtype != b.dtype ? a.dtype < b.dtype : std::ranges::lexicographical_compare(a.shape, b.shape);
  });
  return patterns;
}

std::vector<std::vector<std::string>> find_tied(const Checkpoint& checkpoint, std::span<const TensorRange> ranges) {
  std::vector<std::vector<std::string>> tied;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].place() != ranges[i - 1].place()) continue;
    std::vector<std::string>& names = tied.emplace_back();
    names.emplace_back(checkpoint.tensors[ranges[i - 1].number].name);
    for (; i < ranges.size() && ranges[i].place() == ranges[i - 1].place(); ++i)
      names.emplace_back(checkpoint.tensors[ranges[i].number].name);
  }
  std::ranges::sort(tied);
  return tied;
}

// From the first byte of a tensor in its storage to behind the last. The gaps between the elements of a strided view
// are not worth counting.
std::pair<std::uint64_t, std::uint64_t> bytes_between(const Tensor& tensor) {
  const std::uint64_t offset = tensor.offset();
  if (tensor.is_contiguous()) return {offset, offset + tensor.nbytes()};
  const ElementLayout layout = element_layout(tensor.dtype(), tensor.shape(), tensor.strides());
  return {offset - layout.low_bytes, offset + layout.high_bytes};
}

// Bytes of storages that lie in files but belong to no tensor.
std::uint64_t count_wasted(const Checkpoint& checkpoint) {
  // Neighbours mostly share a storage, so each storage is asked only once where it lies and what it is made of.
  struct Used {
    bool lies_in_file = false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };
  std::unordered_map<const Storage*, Used> all_used;
  const Storage* last = nullptr;
  Used* used = nullptr;
  std::vector<const Tensor*> waiting;
  const auto use = [&](const Tensor& tensor) {
    if (!tensor.storage()) return;
    if (tensor.storage().get() != last) {
      last = tensor.storage().get();
      const auto [place, is_new] = all_used.try_emplace(last);
      used = &place->second;
      if (is_new) {
        used->lies_in_file = last->location().has_value();
        const auto from = last->derivation().from;
        waiting.insert(waiting.end(), from.begin(), from.end());
      }
    }
    if (!used->lies_in_file) return;
    used->ranges.push_back(bytes_between(tensor));
  };
  for (const auto& [name, tensor] : checkpoint) use(tensor);
  while (!waiting.empty()) {
    const Tensor& next = *waiting.back();
    waiting.pop_back();
    use(next);
  }
  std::uint64_t wasted = 0;
  for (auto& [storage, place] : all_used) {
    if (!place.lies_in_file) continue;
    if (!std::ranges::is_sorted(place.ranges)) std::ranges::sort(place.ranges);
    std::uint64_t reached = 0;
    for (const auto& [begin, end] : place.ranges) {
      if (begin > reached) wasted += begin - reached;
      reached = std::max(reached, end);
    }
    wasted += storage->size_bytes() - reached;
  }
  return wasted;
}

// The first components of dotted names.
std::vector<std::string> find_roots(const Checkpoint& checkpoint) {
  std::unordered_set<std::string_view, NameHash> roots;
  std::string_view last;
  for (const auto& [name, tensor] : checkpoint) {
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) continue;
    const std::string_view root = name.substr(0, dot);
    if (roots.empty() || root != last) roots.insert(root);
    last = root;
  }
  const std::vector<std::string_view> names(roots.begin(), roots.end());
  std::vector<std::string> sorted;
  sorted.reserve(names.size());
  for (const std::size_t number : natural_order(names)) sorted.emplace_back(names[number]);
  return sorted;
}

}  // namespace

Summary summarize(const Checkpoint& checkpoint) {
  Summary summary;
  const std::vector<TensorRange> ranges = sorted_ranges(checkpoint, all_numbers(checkpoint));
  const std::vector<bool> is_repeated = find_repeated(checkpoint, ranges);

  std::map<DType, Summary::DTypeTotal> totals;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const Tensor& tensor = checkpoint.tensors[i].tensor;
    ++summary.tensors;
    auto& total = totals.try_emplace(tensor.dtype(), Summary::DTypeTotal{tensor.dtype()}).first->second;
    ++total.tensors;
    if (is_repeated[i]) continue;
    total.bytes += tensor.nbytes();
    summary.parameters += tensor.numel();
    summary.bytes += tensor.nbytes();
  }
  for (const auto& [dtype, total] : totals) summary.dtypes.push_back(total);
  std::stable_sort(summary.dtypes.begin(), summary.dtypes.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  summary.patterns = find_patterns(checkpoint);
  summary.tied = find_tied(checkpoint, ranges);
  summary.wasted_bytes = checkpoint.unused_bytes + count_wasted(checkpoint);
  summary.roots = find_roots(checkpoint);
  return summary;
}

}  // namespace ballast
