#include "extents.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ballast::mpi {
namespace {

// Where the first of the bytes lies that a tensor is made of; looks through what it is derived from.
std::optional<FileLocation> location_of(const Tensor& tensor) {
  std::vector<const Tensor*> waiting{&tensor};
  std::set<const Storage*> seen;
  while (!waiting.empty()) {
    const Tensor* const each = waiting.back();
    waiting.pop_back();
    if (!each->storage() || !seen.insert(each->storage().get()).second) continue;
    if (auto location = each->storage()->location()) return location;
    const Storage::Derivation made = each->storage()->derivation();
    if (made.packed) return made.packed;
    waiting.insert(waiting.end(), made.from.rbegin(), made.from.rend());
  }
  return std::nullopt;
}

// What the granules of a storage are, in its own bytes.
std::uint64_t granule_of(const Storage& storage) {
  if (storage.is_sequential()) return std::max<std::uint64_t>(storage.size_bytes(), 1);
  return storage.location() ? 1 : std::max<std::uint64_t>(storage.granule(), 1);
}

// Two storages of the same bytes of a file are one extent; so are two strided views that are the same.
using ExtentKey = std::tuple<const Storage*, std::string, std::uint64_t, std::uint64_t, DType,
                             std::vector<std::uint64_t>, std::vector<std::int64_t>>;

ExtentKey key_of(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  if (!tensor.is_contiguous()) {
    const auto dims = tensor.shape().dims();
    return {&storage, "", tensor.offset(), 0, tensor.dtype(), {dims.begin(), dims.end()}, tensor.strides()};
  }
  if (const auto place = storage.location())
    return {nullptr, place->file, place->offset, storage.size_bytes(), DType::u8, {}, {}};
  return {&storage, "", 0, 0, DType::u8, {}, {}};
}

Extent extent_of(const Tensor& tensor) {
  Extent extent{.tensor = tensor, .is_strided = !tensor.is_contiguous()};
  if (auto place = location_of(tensor)) {
    extent.file = std::move(place->file);
    extent.offset = place->offset + (extent.is_strided ? tensor.offset() : 0);
  }
  extent.size = extent.is_strided ? tensor.nbytes() : tensor.storage()->size_bytes();
  extent.granule = extent.is_strided ? std::max<std::uint64_t>(extent.size, 1) : granule_of(*tensor.storage());
  return extent;
}

// The bytes of the storage that a strided view lies in.
ByteRange around(const Tensor& view) {
  const DTypeInfo& type = info(view.dtype());
  const auto bytes = [&](std::uint64_t elements) {
    return (elements + type.block_elements - 1) / type.block_elements * type.block_bytes;
  };
  std::uint64_t below = 0, above = 0;
  const Strides strides = view.strides();
  for (std::size_t i = 0; i < view.rank(); ++i) {
    const std::uint64_t steps = view.shape()[i] - 1;
    if (strides[i] < 0)
      below += steps * static_cast<std::uint64_t>(-strides[i]);
    else
      above += steps * static_cast<std::uint64_t>(strides[i]);
  }
  const std::uint64_t low = bytes(below);
  const std::uint64_t end = std::min(view.storage()->size_bytes(), view.offset() + bytes(above + type.block_elements));
  return {view.offset() - low, end - (view.offset() - low)};
}

// A view of much more than its own bytes is read bit by bit.
constexpr std::uint64_t kMostAround = 8;

}  // namespace

Extents extents_of(const Checkpoint& checkpoint) {
  Extents found;
  std::map<ExtentKey, std::size_t> numbers;
  found.tensors.reserve(checkpoint.size());
  const Storage* last = nullptr;  // most tensors share the storage of the one before
  std::size_t last_number = 0;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.nbytes() == 0 || !tensor.storage() || !tensor.has_data()) {
      found.tensors.push_back({});
      continue;
    }
    if (!tensor.is_contiguous() || tensor.storage().get() != last) {
      const auto [entry, is_new] = numbers.try_emplace(key_of(tensor), found.all.size());
      if (is_new) found.all.push_back(extent_of(tensor));
      last_number = entry->second;
      last = tensor.is_contiguous() ? tensor.storage().get() : nullptr;
    }
    found.tensors.push_back({last_number, tensor.is_contiguous() ? tensor.offset() : 0, tensor.nbytes()});
  }
  std::vector<std::size_t> order(found.all.size()), place(found.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::tie(found.all[i].file, found.all[i].offset); });
  std::vector<Extent> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) {
    place[i] = sorted.size();
    sorted.push_back(std::move(found.all[i]));
  }
  found.all = std::move(sorted);
  for (TensorPlace& tensor : found.tensors) {
    if (tensor.bytes != 0) tensor.extent = place[tensor.extent];
  }
  return found;
}

void ExtentReader::lay_out(const Tensor& view) {
  const ByteRange lies = around(view);
  laid_out_ = view;
  if (lies.size / kMostAround > view.nbytes()) return;
  std::vector<std::byte> bytes(static_cast<std::size_t>(lies.size));
  view.storage()->read(lies.offset, bytes);
  view.storage()->release(lies.offset, lies.size);
  laid_out_ =
      Tensor(view.dtype(), view.shape(), view.strides(), memory_storage(std::move(bytes)), view.offset() - lies.offset);
}

void ExtentReader::read_extent(std::size_t number, std::span<const ReadRange> ranges) {
  const Extent& extent = extents_.all[number];
  const Storage& storage = *extent.tensor.storage();
  if (kept_ != number) {
    laid_out_ = {};
    storage.prepare({});
    if (extent.is_strided) lay_out(extent.tensor);
    kept_ = number;
  }
  if (extent.is_strided) {
    for (const ReadRange& range : ranges) laid_out_.read(range.offset, range.out);
    return;
  }
  storage.read_many(ranges);
  for (const ReadRange& range : ranges) storage.release(range.offset, range.out.size());
}

void ExtentReader::read(std::span<const ExtentRead> reads, std::span<const ExtentRead> soon) {
  const auto for_each_extent = [](std::span<const ExtentRead> all, const auto& visit) {
    std::vector<ReadRange> ranges;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ranges.push_back(all[i].range);
      if (i + 1 != all.size() && all[i + 1].extent == all[i].extent) continue;
      visit(all[i].extent, ranges);
      ranges.clear();
    }
  };
  for_each_extent(soon, [&](std::size_t number, const std::vector<ReadRange>& ranges) {
    const Extent& extent = extents_.all[number];
    if (extent.is_strided || extent.tensor.storage()->is_sequential()) return;
    std::vector<ByteRange> bytes;
    for (const ReadRange& range : ranges) bytes.push_back({range.offset, range.out.size()});
    extent.tensor.storage()->prefetch(bytes);
  });
  for_each_extent(reads,
                  [&](std::size_t number, const std::vector<ReadRange>& ranges) { read_extent(number, ranges); });
}

}  // namespace ballast::mpi
