#include <ballast/duplicates.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <ballast/hash.hpp>

#include "inspect/tensor_ranges.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;  // at each end

using DuplicateKind = std::tuple<DType, std::vector<std::uint64_t>>;        // dtype and shape
using DuplicatePlace = std::tuple<const Storage*, std::uint64_t, Strides>;  // where the bytes lie
using TensorsByPlace = std::map<DuplicatePlace, std::vector<std::size_t>>;

DuplicateKind duplicate_kind(const Tensor& tensor) {
  return {tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}};
}

DuplicatePlace duplicate_place(const Tensor& tensor) {
  return {tensor.storage().get(), tensor.offset(), tensor.strides()};
}

// The first and the last bytes of the contiguous form.
std::string sample_of(const Tensor& tensor) {
  const std::uint64_t bytes = std::min(tensor.nbytes(), kSampleBytes);
  std::string sample(2 * bytes, '\0');
  const auto out = std::as_writable_bytes(std::span(sample));
  tensor.read(0, out.first(bytes));
  tensor.read(tensor.nbytes() - bytes, out.last(bytes));
  return sample;
}

// The tensors that are not where another one is, but begin and end as one that is of their kind does.
std::vector<std::size_t> alike(const Checkpoint& checkpoint, const std::map<DuplicateKind, TensorsByPlace>& kinds) {
  std::vector<std::size_t> numbers;
  for (const auto& [kind, places] : kinds) {
    if (places.size() < 2) continue;
    std::map<std::string, std::vector<std::size_t>> samples;
    for (const auto& [place, tensors] : places)
      samples[sample_of(checkpoint.tensors[tensors.front()].tensor)].push_back(tensors.front());
    for (const auto& [sample, same] : samples) {
      if (same.size() > 1) numbers.insert(numbers.end(), same.begin(), same.end());
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

// The digests of these tensors, by their numbers.
std::map<std::size_t, std::string> digests_of(const Checkpoint& checkpoint, const std::vector<std::size_t>& numbers,
                                              const DuplicateOptions& options) {
  Checkpoint some;
  for (const std::size_t i : numbers) some.tensors.insert(checkpoint.tensors[i].name, checkpoint.tensors[i].tensor);
  const HashReport report =
      hash(some, {.threads = options.threads, .progress = options.progress, .limits = options.limits});
  std::map<std::size_t, std::string> digests;
  for (std::size_t i = 0; i < numbers.size(); ++i) digests[numbers[i]] = report.tensors[i].sha256.value_or("");
  return digests;
}

// The tensors of one kind by their bytes; those that nothing else is alike have a group of their own.
std::vector<Duplicates> grouped(const Checkpoint& checkpoint, const TensorsByPlace& places,
                                const std::map<std::size_t, std::string>& digests) {
  std::map<std::string, Duplicates> by_digest;
  std::vector<Duplicates> groups;
  for (const auto& [place, tensors] : places) {
    const auto digest = digests.find(tensors.front());
    Duplicates& group = digest == digests.end() ? groups.emplace_back() : by_digest[digest->second];
    group.copies = group.tensors.empty() ? 1 : group.copies + 1;
    group.bytes = checkpoint.tensors[tensors.front()].tensor.nbytes();
    group.tensors.insert(group.tensors.end(), tensors.begin(), tensors.end());
  }
  for (auto& [digest, group] : by_digest) groups.push_back(std::move(group));
  std::erase_if(groups, [](const Duplicates& group) { return group.tensors.size() < 2; });
  for (Duplicates& group : groups) std::ranges::sort(group.tensors);
  return groups;
}

}  // namespace

std::vector<Duplicates> find_duplicates(const Checkpoint& checkpoint, std::span<const std::size_t> numbers,
                                        const DuplicateOptions& options) {
  std::map<DuplicateKind, TensorsByPlace> kinds;
  for (const std::size_t number : numbers) {
    const Tensor& tensor = checkpoint.tensors[number].tensor;
    if (tensor.has_data() && tensor.nbytes() != 0)
      kinds[duplicate_kind(tensor)][duplicate_place(tensor)].push_back(number);
  }
  const auto digests = digests_of(checkpoint, alike(checkpoint, kinds), options);
  std::vector<Duplicates> found;
  for (const auto& [kind, places] : kinds) {
    for (Duplicates& group : grouped(checkpoint, places, digests)) found.push_back(std::move(group));
  }
  const auto before = [](const Duplicates& a, const Duplicates& b) {
    return std::tuple(b.wasted_bytes(), b.bytes, a.tensors) < std::tuple(a.wasted_bytes(), a.bytes, b.tensors);
  };
  std::ranges::sort(found, before);
  return found;
}

std::vector<Duplicates> find_duplicates(const Checkpoint& checkpoint, const DuplicateOptions& options) {
  return find_duplicates(checkpoint, all_numbers(checkpoint), options);
}

}  // namespace ballast
