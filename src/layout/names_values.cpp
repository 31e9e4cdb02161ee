#include "layout/names_values.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "core/overflow_counter.hpp"
#include "core/remedy.hpp"
#include "kernels/add.hpp"
#include "kernels/cast.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::names {
namespace {

// The rows of [heads, outer, inner] in the order of [heads, inner, outer].
Tensor swap_in_heads(const Tensor& tensor, std::uint64_t head_count, std::uint64_t outer, std::uint64_t inner) {
  std::vector<std::uint64_t> dims{head_count, outer, inner};
  dims.insert(dims.end(), tensor.shape().begin() + 1, tensor.shape().end());
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[1], order[2]);
  const Tensor rows = tensor.is_contiguous() ? tensor : in_order(tensor, tensor.shape());
  return in_order(rows.reshape(Shape(dims)).permute(order), tensor.shape());
}

std::uint64_t half_head(const Tensor& tensor, std::uint64_t head_count) {
  const std::uint64_t rows = tensor.rank() == 0 ? 0 : tensor.shape()[0];
  if (head_count == 0 || rows / 2 < head_count || rows % head_count != 0 || rows / head_count % 2 != 0) {
    throw Error(Errc::mismatch, fmt::format("{} rows are not {} heads of pairs", rows, head_count));
  }
  return rows / head_count / 2;
}

// Adds `by` to every value; the result is in `dtype`.
Tensor shifted(const Tensor& tensor, DType dtype, double by) {
  constexpr std::size_t kElements = 256;
  std::array<double, kElements> shifts;
  shifts.fill(by);
  const std::size_t element_bytes = info(dtype).block_bytes;
  std::vector<std::byte> more(kElements * element_bytes);
  kernels::cast(DType::f64, dtype, std::as_bytes(std::span(shifts)), more);

  const auto shift = [dtype, more = std::move(more)](std::span<std::byte> values) {
    for (std::size_t first = 0; first < values.size(); first += more.size()) {
      const std::size_t size = std::min(more.size(), values.size() - first);
      count_overflows(kernels::add(dtype, values.subspan(first, size), std::span(more).first(size)));
    }
  };
  return Tensor(dtype, tensor.shape(),
                transformed_storage(tensor.to(dtype), element_bytes, fmt::format("add {}", by), shift));
}

class UnreadableStorage final : public Storage {
 public:
  UnreadableStorage(Tensor tensor, Error why) : tensor_(std::move(tensor)), why_(std::move(why)) {}

  std::uint64_t size_bytes() const override { return tensor_.nbytes(); }
  void read(std::uint64_t, std::span<std::byte>) const override { throw Error(why_); }
  Derivation derivation() const override { return {"reordered, it is not known how", {&tensor_}}; }
  const Error& why() const { return why_; }

 private:
  Tensor tensor_;
  Error why_;
};

}  // namespace

Tensor unreadable(Tensor tensor, Error why) {
  const DType dtype = tensor.dtype();
  const Shape shape = tensor.shape();
  return Tensor(dtype, shape, std::make_shared<UnreadableStorage>(std::move(tensor), std::move(why)));
}

const Error* why_unreadable(const Tensor& tensor) {
  const auto* storage = dynamic_cast<const UnreadableStorage*>(tensor.storage().get());
  return storage == nullptr ? nullptr : &storage->why();
}

Tensor in_order(const Tensor& view, Shape shape) {
  return Tensor(view.dtype(), std::move(shape), gathered_storage(view));
}

Tensor interleave_halves(const Tensor& tensor, std::uint64_t head_count) {
  return swap_in_heads(tensor, head_count, 2, half_head(tensor, head_count));
}

Tensor separate_halves(const Tensor& tensor, std::uint64_t head_count) {
  return swap_in_heads(tensor, head_count, half_head(tensor, head_count), 2);
}

Tensor add_one(const Tensor& tensor) {
  return shifted(tensor, tensor.dtype() == DType::f16 ? DType::f16 : DType::f32, 1).to(DType::f32);
}

Tensor subtract_one(const Tensor& tensor) { return shifted(tensor, DType::f32, -1); }

Tensor add_number(const Tensor& tensor, double number) {
  if (!is_floating(tensor.dtype()) || !kernels::can_add(tensor.dtype())) {
    throw Error(Errc::unsupported, fmt::format("nothing can be added to {}", name(tensor.dtype())))
        .hint("cast it first, with " + mention(Remedy::cast, "F32, F16 or BF16"));
  }
  return shifted(tensor, tensor.dtype(), number);
}

}  // namespace ballast::names
