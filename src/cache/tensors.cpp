#include "cache/tensors.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <map>
#include <tuple>
#include <utility>

#include "core/text.hpp"
#include "tensor/doors.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

using Place = RecordedTensor::Place;

constexpr std::string_view kReservedNames = "ballast.cache/";

bool can_be_stored(std::string_view name) {
  return name != "__metadata__" && !name.starts_with(kReservedNames) && valid_utf8_prefix(name) == name.size();
}

// The integer type that is as wide as the number that must be aligned: half a complex number, or a byte of a block.
DType integers_for(DType dtype) {
  if (info(dtype).block_elements != 1) return DType::u8;
  switch (swapped_bytes(dtype)) {
    case 2: return DType::u16;
    case 4: return DType::u32;
    case 8: return DType::u64;
    default: return DType::u8;
  }
}

Tensor carried(const Tensor& tensor) {
  if (info(tensor.dtype()).in_safetensors) return tensor;
  const DType carrier = integers_for(tensor.dtype());
  const Shape shape = {tensor.nbytes() / info(carrier).block_bytes};
  if (tensor.is_contiguous()) return Tensor(carrier, shape, tensor.storage(), tensor.offset());
  return Tensor(carrier, shape, gathered_storage(tensor));
}

// A key that is equal for two names of the same bytes. For contiguous tensors, dtype and shape do not matter.
using Bytes = std::tuple<const Storage*, std::uint64_t, std::uint64_t, DType, std::vector<std::uint64_t>, Strides>;

Bytes bytes_of(const Tensor& tensor) {
  Bytes bytes{tensor.storage().get(), tensor.offset(), tensor.nbytes(), DType::u8, {}, {}};
  if (tensor.is_contiguous()) return bytes;
  std::get<3>(bytes) = tensor.dtype();
  std::get<4>(bytes).assign(tensor.shape().begin(), tensor.shape().end());
  std::get<5>(bytes) = tensor.strides();
  return bytes;
}

[[noreturn]] void fail(std::string_view name) {
  throw Error(Errc::malformed, "the record does not fit tensor " + quote(name));
}

Tensor restored(const RecordedTensor& recorded, const Tensor& stored) {
  const auto count = recorded.shape.numel();
  const auto size = count ? ballast::bytes_of(recorded.dtype, *count) : std::nullopt;
  if (size != stored.nbytes() || !stored.is_contiguous()) fail(recorded.name);
  return Tensor(recorded.dtype, recorded.shape, stored.storage(), stored.offset());
}

Tensor without_data(const RecordedTensor& recorded) {
  const auto count = recorded.shape.numel();
  const auto size = count ? ballast::bytes_of(recorded.dtype, *count) : std::nullopt;
  if (!size) fail(recorded.name);
  return Tensor(recorded.dtype, recorded.shape, meta_storage(*size));
}

}  // namespace

StoredTensors to_stored(const StateDict& tensors) {
  StoredTensors all;
  all.recorded.reserve(tensors.size());
  std::map<Bytes, std::size_t> seen;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t number = all.recorded.size();
    RecordedTensor recorded{.name = name, .dtype = tensor.dtype(), .shape = tensor.shape()};
    const auto [first, is_new] =
        tensor.nbytes() == 0 ? std::pair(seen.end(), true) : seen.try_emplace(bytes_of(tensor), number);
    if (!is_new) {
      recorded.place = Place::earlier;
      recorded.same_as = first->second;
    } else if (!tensor.has_data()) {
      recorded.place = Place::nowhere;
    } else if (can_be_stored(name)) {
      all.tensors.insert(name, carried(tensor));
    } else {
      recorded.place = Place::other_name;
      all.tensors.insert(fmt::format("{}{}", kReservedNames, number), carried(tensor));
      recorded.stored_name = all.tensors[all.tensors.size() - 1].name;
    }
    all.recorded.push_back(std::move(recorded));
  }
  return all;
}

StateDict from_stored(const StateDict& stored, const std::vector<RecordedTensor>& recorded,
                      std::shared_ptr<const void> names) {
  std::vector<StateDict::Entry> entries;
  entries.reserve(recorded.size());
  std::size_t taken = 0;
  for (const RecordedTensor& tensor : recorded) {
    const Tensor* bytes = nullptr;
    switch (tensor.place) {
      case Place::nowhere: entries.emplace_back(tensor.name, without_data(tensor)); continue;
      case Place::own_name: bytes = stored.find(tensor.name), ++taken; break;
      case Place::other_name: bytes = stored.find(tensor.stored_name), ++taken; break;
      case Place::earlier: bytes = tensor.same_as < entries.size() ? &entries[tensor.same_as].tensor : nullptr; break;
    }
    if (bytes == nullptr) fail(tensor.name);
    entries.emplace_back(tensor.name, restored(tensor, *bytes));
  }
  StateDict tensors;
  Doors::keep_alive(tensors, std::move(names));
  const auto twice = Doors::adopt(tensors, std::move(entries));
  if (twice || taken != stored.size()) throw Error(Errc::malformed, "the record does not fit the tensors");
  return tensors;
}

}  // namespace ballast
