#include "layout/file_ranges.hpp"

#include <optional>
#include <utility>

#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostRanges = 65536;  // ranges of one tensor

struct Dim {
  std::uint64_t count, stride;  // in elements
};

// A view as runs of elements, and the dimensions that repeat them, the innermost first (a stride of 0 repeats the same
// run); nothing if the view walks backwards.
struct Runs {
  std::uint64_t elements = 1;
  std::vector<Dim> outer;
};
std::optional<Runs> runs_of(const Tensor& tensor) {
  Runs runs;
  const Strides strides = tensor.strides();
  for (std::size_t i = tensor.rank(); i-- > 0;) {
    const std::uint64_t count = tensor.shape()[i];
    if (count == 1) continue;
    if (strides[i] < 0) return std::nullopt;
    const auto stride = static_cast<std::uint64_t>(strides[i]);
    if (runs.outer.empty() && stride == runs.elements)
      runs.elements *= count;
    else if (!runs.outer.empty() && stride == runs.outer.back().count * runs.outer.back().stride)
      runs.outer.back().count *= count;
    else
      runs.outer.push_back({count, stride});
  }
  return runs;
}

// Nothing if there would be too many ranges, or if a range would begin inside a block.
std::optional<std::vector<FileRange>> plain_ranges(const Tensor& tensor, const Storage::Location& place) {
  const auto runs = runs_of(tensor);
  if (!runs) return std::nullopt;
  const DTypeInfo& type = info(tensor.dtype());
  const auto bytes = [&](std::uint64_t elements) { return elements / type.block_elements * type.block_bytes; };
  if (runs->elements % type.block_elements != 0 && !runs->outer.empty()) return std::nullopt;

  FileRange first{place.file, place.offset + tensor.offset(),
                  runs->outer.empty() ? tensor.nbytes() : bytes(runs->elements), 1, 0};
  if (!runs->outer.empty()) {
    first.count = runs->outer.front().count;
    first.stride = bytes(runs->outer.front().stride);
  }
  std::vector<FileRange> ranges{std::move(first)};
  for (std::size_t i = 1; i < runs->outer.size(); ++i) {
    if (runs->outer[i].count > kMostRanges / ranges.size()) return std::nullopt;
    const std::vector<FileRange> one = ranges;
    for (std::uint64_t k = 1; k < runs->outer[i].count; ++k) {
      for (FileRange range : one) {
        range.offset += k * bytes(runs->outer[i].stride);
        ranges.push_back(std::move(range));
      }
    }
  }
  return ranges;
}

}  // namespace

FileRanges file_ranges(const Tensor& tensor) {
  if (tensor.nbytes() == 0 || !tensor.storage()) return {};
  if (const auto place = tensor.storage()->location()) {
    if (auto ranges = plain_ranges(tensor, *place)) return {std::move(*ranges), true};
  }
  FileRanges all{{}, false};
  for_each_ancestor(tensor, [&](const Tensor& ancestor, const Storage::Derivation& derivation) {
    const auto place = derivation.packed    ? derivation.packed
                       : ancestor.storage() ? ancestor.storage()->location()
                                            : std::nullopt;
    if (!place) return;
    // Only the beginning of compressed bytes is known; for a strided tensor, only that it lies in its storage.
    if (!derivation.packed && ancestor.is_contiguous())
      all.ranges.push_back({place->file, place->offset + ancestor.offset(), ancestor.nbytes(), 1, 0});
    else
      all.ranges.push_back(
          {place->file, place->offset, derivation.packed ? 0 : ancestor.storage()->size_bytes(), 1, 0});
  });
  return all;
}

}  // namespace ballast
