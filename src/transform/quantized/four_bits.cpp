#include "transform/quantized/four_bits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "kernels/quantize.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/transformed_storage.hpp"
#include "transform/quantized/nested_scales.hpp"
#include "transform/quantized/refusal.hpp"

namespace ballast {
namespace {

// All values in a row, in F32, with zeros behind them up to a whole block.
Tensor flat_values(const Tensor& tensor, std::uint64_t block) {
  const Tensor wide = tensor.to(DType::f32);
  const Shape flat({wide.numel()});
  Tensor values = wide.is_contiguous() ? wide.reshape(flat) : Tensor(DType::f32, flat, gathered_storage(wide));
  const std::uint64_t rest = values.numel() % block;
  if (rest == 0) return values;
  const std::vector<float> zeros(block - rest);
  return concatenated({std::move(values), Tensor::from_values<float>(DType::f32, {block - rest}, zeros)}, 0);
}

// A kernel makes the bytes of each block; the values are checked before it sees them.
class QuantizedBlocks final : public BlockwiseStorage {
 public:
  struct Form {
    std::string step, type;
    std::size_t values, bytes;  // of a block
    void (*make)(std::span<const float> values, std::span<std::byte> out);
    bool are_scales = false;
  };
  QuantizedBlocks(Tensor shown, const Tensor& flat, const Form& form)
      : BlockwiseStorage({flat}, form.step, form.values * sizeof(float), form.bytes, Making::in_steps),
        shown_(std::move(shown)),
        form_(form) {}

  // Whoever reads scales reads so few bytes that nobody releases what they are made of.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    BlockwiseStorage::read(offset, out);
    if (form_.are_scales) release(offset, out.size());
  }

 private:
  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::span values(reinterpret_cast<const float*>(in.data()), in.size() / sizeof(float));
    if (!std::isfinite(kernels::largest_magnitude(values)))
      refuse_first_not_finite(shown_, first * form_.values, values, form_.type);
    form_.make(values, out);
    return {};
  }

  Tensor shown_;  // with the shape that a refusal speaks of
  Form form_;
};

Tensor part(DType dtype, Shape shape, const Tensor& tensor, const Tensor& flat, const QuantizedBlocks::Form& form) {
  return Tensor(dtype, std::move(shape), std::make_shared<QuantizedBlocks>(tensor, flat, form));
}

// BlockwiseStorage gives memory of any alignment.
void make_nf4_scales(std::span<const float> values, std::span<std::byte> out) {
  std::array<float, 64> scales;
  while (!out.empty()) {
    const std::size_t count = std::min(scales.size(), out.size() / sizeof(float));
    kernels::nf4_scales(values.first(count * kernels::kNf4Block), std::span(scales).first(count));
    const auto bytes = std::as_bytes(std::span(scales).first(count));
    std::ranges::copy(bytes, out.begin());
    out = out.subspan(bytes.size());
    values = values.subspan(count * kernels::kNf4Block);
  }
}

const QuantizedBlocks::Form kNf4Codes = {"quantize to NF4", "NF4", kernels::kNf4Block, kernels::kNf4Block / 2,
                                         kernels::to_nf4};
const QuantizedBlocks::Form kNf4Scales = {"scales of NF4", "NF4",           kernels::kNf4Block,
                                          sizeof(float),   make_nf4_scales, true};
const QuantizedBlocks::Form kMxfp4Codes = {"quantize to MXFP4", "MXFP4", kernels::kMxfp4Block, kernels::kMxfp4Block / 2,
                                           kernels::to_mxfp4};
const QuantizedBlocks::Form kMxfp4Scales = {"scales of MXFP4",     "MXFP4", kernels::kMxfp4Block, 1,
                                            kernels::mxfp4_scales, true};

// The state as bitsandbytes writes it: JSON with the spaces that Python puts in.
std::string nf4_state(const Tensor& weight) {
  return fmt::format(R"({{"quant_type": "nf4", "blocksize": {}, "dtype": "{}", "shape": {})", kernels::kNf4Block,
                     info(nf4_result(weight.dtype())).torch_name, to_string(weight.shape()));
}

Tensor text_tensor(const std::string& text) {
  return Tensor::from_bytes(DType::u8, {text.size()}, std::as_bytes(std::span(text)));
}

}  // namespace

DType nf4_result(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? dtype : DType::f32; }

NamedParts nf4_parts(const Tensor& weight, bool is_nested) {
  constexpr std::uint64_t kBlock = kernels::kNf4Block;
  const Tensor flat = flat_values(weight, kBlock);
  const std::uint64_t count = weight.numel();
  NamedParts parts;
  parts.emplace_back("", part(DType::u8, {count / 2 + count % 2, 1}, weight, flat, kNf4Codes));
  const Tensor scales = part(DType::f32, {flat.numel() / kBlock}, weight, flat, kNf4Scales);
  const std::string state = nf4_state(weight);
  constexpr std::string_view kStateName = ".quant_state.bitsandbytes__nf4";
  if (is_nested) {
    NestedScales nested = nested_scales(scales, state);
    parts.emplace_back(".absmax", std::move(nested.codes));
    parts.emplace_back(".nested_absmax", std::move(nested.scales));
    parts.emplace_back(".nested_quant_map", std::move(nested.map));
    parts.emplace_back(kStateName, std::move(nested.state));
  } else {
    parts.emplace_back(".absmax", scales);
    parts.emplace_back(kStateName, text_tensor(state + "}"));
  }
  parts.emplace_back(".quant_map", Tensor::from_values<float>(DType::f32, {16}, kernels::kNf4Values));
  return parts;
}

Mxfp4Blocks mxfp4_blocks(const Tensor& tensor) {
  const Tensor flat = flat_values(tensor, kernels::kMxfp4Block);
  std::vector<std::uint64_t> blocks(tensor.shape().begin(), tensor.shape().end());
  blocks.back() /= kernels::kMxfp4Block;
  std::vector<std::uint64_t> codes = blocks;
  codes.push_back(kernels::kMxfp4Block / 2);
  return {part(DType::u8, Shape(codes), tensor, flat, kMxfp4Codes),
          part(DType::u8, Shape(blocks), tensor, flat, kMxfp4Scales)};
}

}  // namespace ballast
