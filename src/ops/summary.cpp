#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "layers.10.mlp.weight" -> "layers.#.mlp.weight"
std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (;;) {
    const auto dot = name.find('.');
    const auto part = name.substr(0, dot);
    pattern += is_number(part) ? "#" : part;
    if (dot == std::string_view::npos) return pattern;
    pattern += '.';
    name.remove_prefix(dot + 1);
  }
}

using Range = std::tuple<const Storage*, std::uint64_t, std::uint64_t>;  // storage, first byte, size

Range range_of(const Tensor& tensor) { return {tensor.storage().get(), tensor.offset(), tensor.nbytes()}; }

std::vector<Summary::Pattern> find_patterns(const Checkpoint& checkpoint) {
  std::map<std::tuple<std::string, DType, std::vector<std::uint64_t>>, Summary::Pattern> groups;
  for (const auto& [name, tensor] : checkpoint) {
    std::string pattern = pattern_of(name);
    auto key =
        std::tuple(pattern, tensor.dtype(), std::vector<std::uint64_t>(tensor.shape().begin(), tensor.shape().end()));
    auto& group =
        groups.try_emplace(std::move(key), Summary::Pattern{std::move(pattern), tensor.dtype(), tensor.shape()})
            .first->second;
    ++group.tensors;
    group.bytes += tensor.nbytes();
  }
  std::vector<Summary::Pattern> patterns;
  for (auto& [key, group] : groups) patterns.push_back(std::move(group));
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  return patterns;
}

std::vector<std::vector<std::string>> find_tied(const Checkpoint& checkpoint) {
  std::map<Range, std::vector<std::string>> names;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.nbytes() != 0) names[range_of(tensor)].emplace_back(name);
  }
  std::vector<std::vector<std::string>> tied;
  for (auto& [range, group] : names) {
    if (group.size() > 1) tied.push_back(std::move(group));
  }
  std::sort(tied.begin(), tied.end());
  return tied;
}

// Bytes of storages that lie in files but in none of the tensors.
std::uint64_t count_wasted(const Checkpoint& checkpoint) {
  std::map<const Storage*, std::vector<std::pair<std::uint64_t, std::uint64_t>>> used;
  const auto use = [&](const Tensor& tensor, const Storage::Derivation&) {
    if (!tensor.storage() || !tensor.storage()->location()) return;
    auto& ranges = used[tensor.storage().get()];
    // What a strided view leaves out between its elements is not worth counting.
    if (tensor.is_contiguous())
      ranges.emplace_back(tensor.offset(), tensor.offset() + tensor.nbytes());
    else
      ranges.emplace_back(0, tensor.storage()->size_bytes());
  };
  for (const auto& [name, tensor] : checkpoint) for_each_ancestor(tensor, use);
  std::uint64_t wasted = 0;
  for (auto& [storage, ranges] : used) {
    std::sort(ranges.begin(), ranges.end());
    std::uint64_t reached = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin > reached) wasted += begin - reached;
      reached = std::max(reached, end);
    }
    wasted += storage->size_bytes() - reached;
  }
  return wasted;
}

}  // namespace

Summary summarize(const Checkpoint& checkpoint) {
  Summary summary;
  std::map<DType, Summary::DTypeTotal> totals;
  std::set<Range> counted;
  std::set<std::string, decltype(&natural_less)> roots(&natural_less);
  for (const auto& [name, tensor] : checkpoint) {
    ++summary.tensors;
    if (const auto dot = name.find('.'); dot != std::string_view::npos) roots.emplace(name.substr(0, dot));
    auto& total = totals.try_emplace(tensor.dtype(), Summary::DTypeTotal{tensor.dtype()}).first->second;
    ++total.tensors;
    if (tensor.nbytes() != 0 && tensor.storage() && !counted.insert(range_of(tensor)).second) continue;
    total.bytes += tensor.nbytes();
    summary.parameters += tensor.numel();
    summary.bytes += tensor.nbytes();
  }
  for (const auto& [dtype, total] : totals) summary.dtypes.push_back(total);
  std::stable_sort(summary.dtypes.begin(), summary.dtypes.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  summary.patterns = find_patterns(checkpoint);
  summary.tied = find_tied(checkpoint);
  summary.wasted_bytes = count_wasted(checkpoint);
  summary.roots.assign(roots.begin(), roots.end());
  return summary;
}

}  // namespace ballast
