// Compressed tensors, in three ways:
//   Whatever the bytes are, they unpack to exactly the expected number of bytes, the same in one piece and in parts, or
//   give an Error that names the tensor.
//   Any bytes can be packed and come back unchanged.
//   Whatever the metadata say, the checkpoint can still be read.
//
// The first byte selects the way, the second one the dtype, and three more give the expected number of bytes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "checkpoint/agreements/compressed.hpp"
#include "tensor/packed_frames.hpp"
#include "tensor/packed_storage.hpp"

namespace {

using namespace ballast;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kHeadBytes = 5;
constexpr std::uint64_t kMostBytes = 3 * kChunkBytes;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

Tensor bytes_tensor(std::span<const std::byte> bytes) {
  return Tensor::from_bytes(DType::u8, Shape{bytes.size()}, bytes);
}

std::optional<Bytes> read_or_complain(const Storage& storage, std::size_t step) {
  Bytes bytes(storage.size_bytes());
  try {
    storage.prepare({});
    for (std::size_t done = 0; done < bytes.size(); done += step)
      storage.read(done, std::span(bytes).subspan(done, std::min(step, bytes.size() - done)));
  } catch (const Error& error) {
    require(error.code() == Errc::malformed, "an odd kind of error", error.what());
    require(error.message().starts_with("tensor \"w\" has "), "an error that names no tensor", error.what());
    require(error.message().size() < 2000, "a message that nobody would read", error.what());
    return std::nullopt;
  }
  return bytes;
}

void unpack(std::span<const std::byte> packed, DType dtype, std::uint64_t size) {
  StoragePtr storage;
  try {
    storage = unpacked_storage(bytes_tensor(packed), dtype, size, "w");
  } catch (const Error& error) {
    require(error.code() == Errc::malformed, "an odd kind of error", error.what());
    return;
  }
  require(storage->size_bytes() == size, "another size");
  const auto whole = read_or_complain(*storage, kMostBytes), parts = read_or_complain(*storage, 300'001);
  require(whole == parts, "other bytes in one piece than in parts");
}

void pack_and_unpack(std::span<const std::byte> bytes, DType dtype) {
  const DTypeInfo& type = info(dtype);
  const std::size_t blocks = bytes.size() / type.block_bytes;
  bytes = bytes.first(blocks * type.block_bytes);
  const Tensor tensor = Tensor::from_bytes(dtype, Shape{blocks * type.block_elements}, bytes);
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < chunk_count(bytes.size()); ++i) sizes.push_back(measure_frame(tensor, i));
  const auto packed = packed_storage(tensor, sizes, "w");
  const Tensor packed_tensor(DType::u8, Shape{packed->size_bytes()}, packed);
  const auto back = read_or_complain(*unpacked_storage(packed_tensor, dtype, bytes.size(), "w"), kMostBytes);
  require(back && std::ranges::equal(*back, bytes), "other bytes after a round trip");
}

void unfold(std::span<const std::byte> text) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", bytes_tensor(Bytes(100)));
  checkpoint.tensors.insert("v", Tensor(DType::f32, Shape{2}, memory_storage(Bytes(8))));
  checkpoint.metadata["ballast.compressed"].assign(reinterpret_cast<const char*>(text.data()), text.size());
  const Checkpoint back = unfold_compressed(checkpoint, {});
  require(back.size() == 2 && back.at("v").nbytes() == 8, "another tensor than before");
  require(back.notes.size() == back.metadata.size(), "left as it is, but without a note");
  // 100 bytes can hold a table of at most ten chunks.
  require(back.at("w").nbytes() <= 10 * kChunkBytes, "a tensor that its bytes have no room for");
  read_or_complain(*back.at("w").storage(), kChunkBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHeadBytes) return 0;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(kHeadBytes);
  const DTypeInfo& type = all_dtypes()[data[1] % all_dtypes().size()];
  const std::uint64_t claimed = (data[2] | std::uint64_t{data[3]} << 8 | std::uint64_t{data[4]} << 16) % kMostBytes;
  switch (data[0] % 3) {
    case 0: unpack(rest, type.dtype, claimed - claimed % type.block_bytes); break;
    case 1: pack_and_unpack(rest, type.dtype); break;
    default: unfold(rest); break;
  }
  return 0;
}
