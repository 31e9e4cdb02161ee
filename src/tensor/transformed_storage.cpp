#include "tensor/transformed_storage.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

class TransformedStorage final : public BlockwiseStorage {
 public:
  TransformedStorage(Tensor source, std::size_t element_bytes, std::string step,
                     std::function<void(std::span<std::byte>)> change)
      : BlockwiseStorage({std::move(source)}, std::move(step), element_bytes, element_bytes, Making::in_place),
        change_(std::move(change)) {}

 private:
  Overflows make(std::uint64_t, std::span<const std::byte>, std::span<std::byte> out) const override {
    change_(out);
    return {};
  }

  std::function<void(std::span<std::byte>)> change_;
};

}  // namespace

StoragePtr transformed_storage(Tensor source, std::uint64_t element_bytes, std::string step,
                               std::function<void(std::span<std::byte>)> change) {
  return std::make_shared<TransformedStorage>(std::move(source), static_cast<std::size_t>(element_bytes),
                                              std::move(step), std::move(change));
}

StoragePtr gathered_storage(Tensor view) {
  return transformed_storage(std::move(view), 1, "", [](std::span<std::byte>) {});
}

StoragePtr swapped_elements(Tensor bytes, std::uint64_t element_bytes) {
  return transformed_storage(std::move(bytes), element_bytes, fmt::format("swap bytes by {}", element_bytes),
                             [step = static_cast<std::ptrdiff_t>(element_bytes)](std::span<std::byte> elements) {
                               for (auto at = elements.begin(); at != elements.end(); at += step)
                                 std::reverse(at, at + step);
                             });
}

std::uint64_t swapped_bytes(DType dtype) noexcept {
  const std::uint64_t size = info(dtype).block_bytes;
  return info(dtype).kind == DTypeKind::complex ? size / 2 : size;
}

}  // namespace ballast
