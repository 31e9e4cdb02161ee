#include "tensor/encoded_storage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

#include "kernels/ggml_encode.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepValues = 16384;  // in the second-level cache with their blocks

class EncodedStorage final : public Storage {
 public:
  EncodedStorage(Tensor values, DType type)
      : values_(std::move(values)), type_(type), elements_(info(type).block_elements), bytes_(info(type).block_bytes) {}

  std::uint64_t size_bytes() const override { return values_.numel() / elements_ * bytes_; }
  std::uint64_t granule() const override { return kStepValues / elements_ * bytes_; }
  bool is_sequential() const override { return values_.storage()->is_sequential(); }
  bool has_data() const override { return values_.has_data(); }
  Derivation derivation() const override { return {"encode to " + std::string(name(type_)), {&values_}}; }
  void prepare(const Progress& progress) const override { values_.storage()->prepare(progress); }
  void check_unchanged() const override { values_.storage()->check_unchanged(); }

  // A range may begin or end inside a block: those two are made aside.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<float> values(static_cast<std::size_t>(std::min(kStepValues, values_.numel())));
    if (const std::uint64_t skip = offset % bytes_; skip != 0 && !out.empty()) {
      const auto part = out.first(std::min<std::size_t>(bytes_ - skip, out.size()));
      encode_part(offset / bytes_, skip, part, values);
      offset += part.size();
      out = out.subspan(part.size());
    }
    const std::size_t step = kStepValues / elements_ * bytes_;
    while (out.size() >= bytes_) {
      const auto blocks = out.first(std::min(step, out.size() - out.size() % bytes_));
      encode(offset / bytes_, blocks, values);
      offset += blocks.size();
      out = out.subspan(blocks.size());
    }
    if (!out.empty()) encode_part(offset / bytes_, 0, out, values);
  }

 private:
  void encode(std::uint64_t first, std::span<std::byte> blocks, std::span<float> buffer) const {
    const auto values = buffer.first(blocks.size() / bytes_ * elements_);
    values_.read(first * elements_ * sizeof(float), std::as_writable_bytes(values));
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      throw Error(Errc::unsupported, "a value that is NaN or infinite cannot be encoded as " + std::string(name(type_)))
          .hint("stats shows which tensors have some; keep them with --dtype 'NAME=F16' before the others");
    kernels::encode_blocks(type_, values, blocks);
  }

  void encode_part(std::uint64_t block, std::uint64_t skip, std::span<std::byte> part, std::span<float> buffer) const {
    std::vector<std::byte> whole(bytes_);
    encode(block, whole, buffer);
    std::memcpy(part.data(), whole.data() + skip, part.size());
  }

  Tensor values_;  // F32
  DType type_;
  std::size_t elements_, bytes_;
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
