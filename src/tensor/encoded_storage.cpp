#include "tensor/encoded_storage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/provenance.hpp>

#include "core/overflow_counter.hpp"
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
      encode_part(offset / bytes_, skip, part, values);  // whoever reads the beginning of a block counts its overflows
      offset += part.size();
      out = out.subspan(part.size());
    }
    Overflows overflows;
    const std::size_t step = kStepValues / elements_ * bytes_;
    while (out.size() >= bytes_) {
      const auto blocks = out.first(std::min(step, out.size() - out.size() % bytes_));
      overflows.add(encode(offset / bytes_, blocks, values));
      offset += blocks.size();
      out = out.subspan(blocks.size());
    }
    if (!out.empty()) overflows.add(encode_part(offset / bytes_, 0, out, values));
    count_overflows(overflows);
  }

 private:
  Overflows encode(std::uint64_t first, std::span<std::byte> blocks, std::span<float> buffer) const {
    const auto values = buffer.first(blocks.size() / bytes_ * elements_);
    values_.read(first * elements_ * sizeof(float), std::as_writable_bytes(values));
    if (const auto index = kernels::find_not_finite(values)) refuse(first * elements_ + *index, values[*index]);
    return kernels::encode_blocks(type_, values, blocks);
  }

  [[noreturn]] void refuse(std::uint64_t index, float value) const {
    Error error(Errc::unsupported, fmt::format("the value at {} is {}, which cannot be encoded as {}", place_of(index),
                                               std::isnan(value) ? "NaN" : "infinite", name(type_)));
    const Provenance origin = provenance(values_);
    if (!origin.from.empty()) error.in(origin.from.front().file);
    throw error.hint("keep this tensor, with --dtype 'NAME=F16' before the other; ballast stats finds all of them");
  }

  std::string place_of(std::uint64_t index) const {
    std::vector<std::uint64_t> place(values_.rank());
    for (std::size_t i = place.size(); i-- > 0; index /= values_.shape()[i]) place[i] = index % values_.shape()[i];
    return to_string(Shape(place));
  }

  Overflows encode_part(std::uint64_t block, std::uint64_t skip, std::span<std::byte> part,
                        std::span<float> buffer) const {
    std::vector<std::byte> whole(bytes_);
    const Overflows overflows = encode(block, whole, buffer);
    std::memcpy(part.data(), whole.data() + skip, part.size());
    return overflows;
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
