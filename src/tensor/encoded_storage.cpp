#include "tensor/encoded_storage.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/provenance.hpp>

#include "core/remedy.hpp"
#include "kernels/ggml/encode.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepValues = 16384;  // fit into the second-level cache together with their blocks

class EncodedStorage final : public BlockwiseStorage {
 public:
  EncodedStorage(Tensor values, DType type)
      : BlockwiseStorage({std::move(values)}, "encode to " + std::string(name(type)),
                         info(type).block_elements * sizeof(float), info(type).block_bytes, Making::in_steps),
        type_(type) {}

  std::uint64_t granule() const override { return kStepValues / info(type_).block_elements * info(type_).block_bytes; }

 private:
  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::span values(reinterpret_cast<const float*>(in.data()), in.size() / sizeof(float));
    if (const auto index = kernels::find_not_finite(values))
      refuse(first * info(type_).block_elements + *index, values[*index]);
    return kernels::encode_blocks(type_, values, out);
  }

  [[noreturn]] void refuse(std::uint64_t index, float value) const {
    Error error(Errc::unsupported, fmt::format("the value at {} is {}, which cannot be encoded as {}", place_of(index),
                                               std::isnan(value) ? "NaN" : "infinite", name(type_)));
    const Provenance origin = provenance(source());
    if (!origin.from.empty()) error.in(origin.from.front().file);
    throw error.hint("keep this tensor, with " + mention(Remedy::cast_by_name, "'NAME=F16'") + " before the other; " +
                     mention(Remedy::stats) + " finds all of them");
  }

  std::string place_of(std::uint64_t index) const {
    std::vector<std::uint64_t> place(source().rank());
    for (std::size_t i = place.size(); i-- > 0; index /= source().shape()[i]) place[i] = index % source().shape()[i];
    return to_string(Shape(place));
  }

  DType type_;
};

}  // namespace

Tensor encoded(const Tensor& tensor, DType type) {
  if (!kernels::can_encode(type)) {
    throw Error(Errc::unsupported, "values cannot be encoded as " + std::string(name(type)))
        .hint("types that need an importance matrix are made by llama-quantize");
  }
  const std::uint64_t row = tensor.rank() == 0 ? 1 : tensor.shape()[tensor.rank() - 1];
  if (row % info(type).block_elements != 0) {
    throw Error(Errc::unsupported, "rows of " + std::to_string(row) + " elements are no whole blocks of " +
                                       std::string(name(type)) + ", which have " +
                                       std::to_string(info(type).block_elements));
  }
  if (tensor.numel() == 0) return Tensor(type, tensor.shape(), nullptr);
  return Tensor(type, tensor.shape(), std::make_shared<EncodedStorage>(tensor.to(DType::f32), type));
}

}  // namespace ballast
