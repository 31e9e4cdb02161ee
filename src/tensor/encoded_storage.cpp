#include "tensor/encoded_storage.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "kernels/ggml/encode.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/not_finite.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepValues = 16384;  // fit into the second-level cache together with their blocks

using Importance = std::shared_ptr<const std::vector<float>>;

// How many elements are encoded together: a block, or a row if each block depends on all of its row.
std::size_t unit_of(const Tensor& values, DType type, const Importance& importance) {
  const bool is_row = importance != nullptr && kernels::importance_needs_rows(type);
  return is_row ? values.shape()[values.rank() - 1] : info(type).block_elements;
}

class EncodedStorage final : public BlockwiseStorage {
 public:
  EncodedStorage(const Tensor& values, DType type, Importance importance)
      : BlockwiseStorage({values}, fmt::format("encode to {}{}", name(type), importance ? " with importance" : ""),
                         unit_of(values, type, importance) * sizeof(float),
                         *bytes_of(type, unit_of(values, type, importance)), Making::in_steps),
        type_(type),
        unit_(unit_of(values, type, importance)),
        importance_(std::move(importance)) {}

  std::uint64_t granule() const override {
    return *bytes_of(type_, std::max(kStepValues / unit_, std::uint64_t{1}) * unit_);
  }

 private:
  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::span values(reinterpret_cast<const float*>(in.data()), in.size() / sizeof(float));
    if (const auto index = kernels::find_not_finite(values)) refuse(first * unit_ + *index, values[*index]);
    if (importance_ == nullptr) return kernels::encode_blocks(type_, values, out);
    return encode_with_importance(first * unit_, values, out);
  }

  // As many whole rows of a matrix as there are, or else a part of a row, are encoded at once.
  Overflows encode_with_importance(std::uint64_t index, std::span<const float> values, std::span<std::byte> out) const {
    const std::uint64_t row = source().shape()[source().rank() - 1];
    const std::uint64_t matrix = importance_->size() == row ? source().numel() : source().numel() / source().shape()[0];
    Overflows overflows;
    while (!values.empty()) {
      const std::uint64_t column = index % row, rest = matrix - index % matrix;
      const std::uint64_t rows = std::min<std::uint64_t>(values.size(), rest) / row;
      const bool is_whole = column == 0 && rows > 0;
      const std::uint64_t some = is_whole ? rows * row : std::min<std::uint64_t>(values.size(), row - column);
      const auto weights = std::span(*importance_).subspan(index / matrix * row + column, is_whole ? row : some);
      const std::uint64_t bytes = *bytes_of(type_, some);
      overflows.add(kernels::encode_rows(type_, values.first(some), weights, out.first(bytes)));
      values = values.subspan(some);
      out = out.subspan(bytes);
      index += some;
    }
    return overflows;
  }

  [[noreturn]] void refuse(std::uint64_t index, float value) const {
    refuse_not_finite(source(), index, value, name(type_),
                      "keep this tensor, with " + mention(Remedy::cast_by_name, "'NAME=F16'") +
                          " before the other, or " + mention(Remedy::tensor_type, "'NAME=F16'") + " in a recipe; " +
                          mention(Remedy::stats) + " finds all of them");
  }

  DType type_;
  std::uint64_t unit_;
  Importance importance_;
};

void check_importance(const Tensor& tensor, std::size_t size) {
  const std::uint64_t row = tensor.rank() == 0 ? 1 : tensor.shape()[tensor.rank() - 1];
  if (size == row || (tensor.rank() == 3 && size / row == tensor.shape()[0] && size % row == 0)) return;
  throw Error(Errc::mismatch, fmt::format("the importance of {} elements is none for a tensor of shape {}", size,
                                          to_string(tensor.shape())))
      .hint("the importance matrix may belong to another model");
}

}  // namespace

Tensor encoded(const Tensor& tensor, DType type) { return encoded(tensor, type, nullptr); }

Tensor encoded(const Tensor& tensor, DType type, Importance importance) {
  if (!kernels::can_encode(type))
    throw Error(Errc::unsupported, "values cannot be encoded as " + std::string(name(type)));
  if (importance == nullptr && kernels::needs_importance(type)) {
    throw Error(Errc::unsupported, fmt::format("values are encoded as {} with an importance matrix only", name(type)))
        .hint("IQ2_S and IQ3_S need none");
  }
  const std::uint64_t row = tensor.rank() == 0 ? 1 : tensor.shape()[tensor.rank() - 1];
  if (row % info(type).block_elements != 0) {
    throw Error(Errc::unsupported, "rows of " + std::to_string(row) + " elements are no whole blocks of " +
                                       std::string(name(type)) + ", which have " +
                                       std::to_string(info(type).block_elements));
  }
  if (tensor.numel() == 0) return Tensor(type, tensor.shape(), nullptr);
  if (importance != nullptr) check_importance(tensor, importance->size());
  if (!kernels::takes_importance(type)) importance = nullptr;
  return Tensor(type, tensor.shape(),
                std::make_shared<EncodedStorage>(tensor.to(DType::f32), type, std::move(importance)));
}

}  // namespace ballast
