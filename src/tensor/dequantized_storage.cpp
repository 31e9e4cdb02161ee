#include "tensor/dequantized_storage.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "core/text.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// Widens the integers of a quantized type. Of integers that share a byte, the first is in its low bits.
using Unpack = void (*)(const std::byte* in, std::int32_t* out, std::size_t count);

template <class T>
void widen(const std::byte* in, std::int32_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, in + i * sizeof value, sizeof value);
    out[i] = value;  // NOLINT(bugprone-signed-char-misuse): a number, not a character
  }
}

template <unsigned kBits>
void unpack_bits(const std::byte* in, std::int32_t* out, std::size_t count) {
  constexpr std::size_t kInByte = 8 / kBits;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned byte = std::to_integer<unsigned>(in[i / kInByte]);
    out[i] = static_cast<std::int32_t>(byte >> (i % kInByte * kBits) & ((1u << kBits) - 1));
  }
}

struct QuantizedType {
  DType dtype;
  Unpack unpack;
};
constexpr std::array kQuantizedTypes = {
    QuantizedType{DType::qi8, widen<std::int8_t>},   QuantizedType{DType::qu8, widen<std::uint8_t>},
    QuantizedType{DType::qi32, widen<std::int32_t>}, QuantizedType{DType::qu4x2, unpack_bits<4>},
    QuantizedType{DType::qu2x4, unpack_bits<2>},
};

// The numbers that all elements of a tensor, or of one channel of it, share.
struct Channel {
  double scale;
  double zero_point;
};

// The three ways by which torch makes real numbers. They round differently; each of these does exactly what torch does.
enum class Scheme : std::uint8_t {
  per_tensor,         // F32(q - zero_point) * F32(scale), the difference in integers
  per_channel,        // (F32(q) - F32(zero_point)) * F64(scale)
  per_channel_float,  // (F32(q) - F32(zero_point)) * F32(scale): float zero points
};

void dequantize(Scheme scheme, const Channel& channel, std::span<const std::int32_t> in, float* out) {
  const auto scale = static_cast<float>(channel.scale), zero_point = static_cast<float>(channel.zero_point);
  switch (scheme) {
    case Scheme::per_tensor: {
      const auto zero = static_cast<std::int64_t>(channel.zero_point);
      for (const std::int32_t q : in) *out++ = static_cast<float>(q - zero) * scale;
      break;
    }
    case Scheme::per_channel:
      for (const std::int32_t q : in)
        *out++ = static_cast<float>(static_cast<double>(static_cast<float>(q) - zero_point) * channel.scale);
      break;
    case Scheme::per_channel_float:
      for (const std::int32_t q : in) *out++ = (static_cast<float>(q) - zero_point) * scale;
      break;
  }
}

std::vector<double> read_doubles(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::f64);
  std::vector<double> values(static_cast<std::size_t>(tensor.numel()));
  if (wide.storage()) wide.storage()->prepare({});
  wide.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

struct Quantized {
  const QuantizedType* type = nullptr;
  Tensor integers, scales, zero_points;  // the last two if they differ from channel to channel
  Scheme scheme = Scheme::per_tensor;
  Channel whole{};
  std::uint64_t channels = 1, channel_elements = 0;  // after so many elements, the next channel begins
};

std::vector<Tensor> parts_of(const Quantized& quantized) {
  if (quantized.scheme == Scheme::per_tensor) return {quantized.integers};
  return {quantized.integers, quantized.scales, quantized.zero_points};
}

std::string step_of(const Quantized& quantized) {
  if (quantized.scheme != Scheme::per_tensor) return "dequantize by channels";
  return fmt::format("dequantize by {}, {}", quantized.whole.scale, quantized.whole.zero_point);
}

class DequantizedStorage final : public DerivedStorage {
 public:
  explicit DequantizedStorage(Quantized quantized)
      : DerivedStorage(parts_of(quantized), step_of(quantized)),
        quantized_(std::move(quantized)),
        size_(quantized_.integers.numel() * sizeof(float)) {}

  std::uint64_t size_bytes() const override { return size_; }
  std::uint64_t granule() const override { return info(quantized_.integers.dtype()).block_elements * sizeof(float); }

  void prepare(const Progress& progress) const override {
    once_.run([&] {
      const StoragePtr& storage = quantized_.integers.storage();
      DerivedStorage::prepare(progress);
      // Reading a strided view jumps back and forth, which a compressed stream cannot do.
      const bool must_hold = storage->is_sequential() && !quantized_.integers.is_contiguous();
      integers_ = must_hold ? quantized_.integers.realize(1) : quantized_.integers;
      if (quantized_.scheme == Scheme::per_tensor) {
        channels_ = {quantized_.whole};
        return;
      }
      const auto scales = read_doubles(quantized_.scales), zero_points = read_doubles(quantized_.zero_points);
      channels_.clear();
      for (std::size_t i = 0; i < scales.size(); ++i) channels_.push_back({scales[i], zero_points[i]});
    });
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    prepare({});
    constexpr std::uint64_t kStep = std::uint64_t{16} << 10;  // elements that fit into the cache with their result
    const std::uint64_t packed = info(quantized_.integers.dtype()).block_elements;
    const std::uint64_t end = (offset + out.size() + sizeof(float) - 1) / sizeof(float);
    Buffers buffers;
    for (std::uint64_t first = offset / sizeof(float); first < end;) {
      // Begins with the first element of a byte, even if that element is not wanted.
      const std::uint64_t begin = first / packed * packed, count = std::min(kStep, end - begin);
      make(begin, count, buffers);
      const std::uint64_t made = begin * sizeof(float), from = std::max(made, offset);
      const std::uint64_t to = std::min(made + count * sizeof(float), offset + out.size());
      std::memcpy(out.data() + (from - offset), std::as_bytes(std::span(buffers.values)).data() + (from - made),
                  to - from);
      first = begin + count;
    }
  }

 private:
  struct Buffers {
    std::vector<std::byte> packed;
    std::vector<std::int32_t> integers;
    std::vector<float> values;
  };

  void make(std::uint64_t first, std::uint64_t count, Buffers& buffers) const {
    const DTypeInfo& type = info(quantized_.integers.dtype());
    const std::uint64_t blocks = (count + type.block_elements - 1) / type.block_elements;
    buffers.packed.resize(blocks * type.block_bytes);
    buffers.integers.resize(count);
    buffers.values.resize(count);
    integers_.read(first / type.block_elements * type.block_bytes, buffers.packed);
    quantized_.type->unpack(buffers.packed.data(), buffers.integers.data(), count);
    for (std::uint64_t i = 0; i < count;) {
      const std::uint64_t run = (first + i) / quantized_.channel_elements,
                          next = (run + 1) * quantized_.channel_elements;
      const std::uint64_t size = std::min(count - i, next - (first + i));
      dequantize(quantized_.scheme, channels_[run % quantized_.channels], std::span(buffers.integers).subspan(i, size),
                 buffers.values.data() + i);
      i += size;
    }
  }

  Quantized quantized_;
  std::uint64_t size_;
  mutable Once once_;
  mutable Tensor integers_;                // set by prepare()
  mutable std::vector<Channel> channels_;  // set by prepare()
};

[[noreturn]] void complain(const Composite& composite, const std::string& what) {
  throw Error(Errc::malformed, fmt::format("the quantized tensor {} {}", quote(composite.name), what));
}

void set_channels(Quantized& quantized, const Composite& composite, std::span<const Tensor> parts) {
  const Shape& shape = quantized.integers.shape();
  const std::size_t axis = *composite.axis;
  if (axis >= shape.rank()) complain(composite, fmt::format("of shape {} has no axis {}", to_string(shape), axis));
  quantized.scales = parts[1];
  quantized.zero_points = parts[2];
  for (const Tensor& part : parts.subspan(1)) {
    if (part.numel() != shape[axis])
      complain(composite, fmt::format("has {} scales or zero points for {} channels", part.numel(), shape[axis]));
  }
  quantized.scheme = is_floating(quantized.zero_points.dtype()) ? Scheme::per_channel_float : Scheme::per_channel;
  quantized.channels = shape[axis];
  quantized.channel_elements = 1;
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) quantized.channel_elements *= shape[i];  // fits: numel does
}

}  // namespace

Tensor dequantized_tensor(const Composite& composite, std::span<const Tensor> parts) {
  if (parts.size() != (composite.axis ? 3 : 1)) complain(composite, fmt::format("has {} parts", parts.size()));
  Quantized quantized;
  quantized.integers = parts[0];
  const DType dtype = quantized.integers.dtype();
  const auto type = std::ranges::find_if(kQuantizedTypes, [&](const QuantizedType& t) { return t.dtype == dtype; });
  if (type == kQuantizedTypes.end()) complain(composite, fmt::format("is made of {}", name(dtype)));
  quantized.type = &*type;

  if (composite.axis) {
    set_channels(quantized, composite, parts);
  } else {
    if (composite.zero_point < INT32_MIN || composite.zero_point > INT32_MAX)
      complain(composite, fmt::format("has the zero point {}, which does not fit 32 bits", composite.zero_point));
    quantized.whole = {composite.scale, static_cast<double>(composite.zero_point)};
    quantized.channel_elements = quantized.integers.numel();
  }
  const Shape shape = quantized.integers.shape();
  const auto size = bytes_of(DType::f32, *shape.numel());
  if (!size) complain(composite, fmt::format("of shape {} does not fit 64 bits", to_string(shape)));
  if (*size == 0) return Tensor(DType::f32, shape, nullptr);
  const bool has_data = std::ranges::all_of(parts, [](const Tensor& part) { return part.has_data(); });
  if (!has_data) return Tensor(DType::f32, shape, meta_storage(*size));
  return Tensor(DType::f32, shape, std::make_shared<DequantizedStorage>(std::move(quantized)));
}

std::uint64_t channel_memory_bytes(std::span<const Tensor> parts) noexcept {
  return parts.size() < 2 ? 0 : checked_mul(parts[1].numel(), sizeof(Channel)).value_or(UINT64_MAX);
}

}  // namespace ballast
