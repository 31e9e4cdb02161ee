#include "tensor/cast_storage.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "core/checked.hpp"
#include "kernels/cast.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// A block is the smallest number of elements that begins and ends on bytes in both dtypes.
class CastStorage final : public BlockwiseStorage {
 public:
  CastStorage(Tensor source, DType to, std::uint64_t elements)
      : BlockwiseStorage({source}, "cast to " + std::string(name(to)), *bytes_of(source.dtype(), elements),
                         *bytes_of(to, elements), Making::from_map),
        to_(to) {}

 private:
  Overflows make(std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out) const override {
    return kernels::cast(source().dtype(), to_, in, out);
  }

  DType to_;
};

}  // namespace

StoragePtr cast_storage(Tensor source, DType to) {
  static_cast<void>(fits(bytes_of(to, source.numel()), "the size of a cast tensor"));
  const auto elements = std::lcm<std::uint64_t>(info(source.dtype()).block_elements, info(to).block_elements);
  return std::make_shared<CastStorage>(std::move(source), to, elements);
}

}  // namespace ballast
