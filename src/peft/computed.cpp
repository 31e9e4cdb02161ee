#include "peft/computed.hpp"

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <cstring>
#include <utility>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast::peft {
namespace {

class ComputedStorage final : public DerivedStorage {
 public:
  using Make = std::function<std::vector<std::byte>(const std::vector<Tensor>&)>;

  ComputedStorage(std::uint64_t size, std::string step, std::vector<Tensor> from, Make make)
      : DerivedStorage(std::move(from), std::move(step)), size_(size), make_(std::move(make)) {}

  std::uint64_t size_bytes() const override { return size_; }
  bool is_sequential() const override { return false; }  // prepare() has made all of it

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    prepare({});
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  void prepare(const Progress&) const override {
    once_.run([&] {
      std::vector<std::byte> made = make_(from());
      if (made.size() != size_) throw Error(Errc::malformed, "computed values of the wrong size");
      bytes_ = std::move(made);
    });
  }

  std::uint64_t memory_bytes() const override { return size_; }

 private:
  std::uint64_t size_;
  Make make_;
  mutable Once once_;
  mutable std::vector<std::byte> bytes_;
};

}  // namespace

Tensor computed(DType dtype, Shape shape, std::string step, std::vector<Tensor> from, ComputedStorage::Make make) {
  const std::uint64_t size = fits(bytes_of(dtype, fits(shape.numel(), "a shape")), "a tensor");
  return Tensor(dtype, std::move(shape),
                std::make_shared<ComputedStorage>(size, std::move(step), std::move(from), std::move(make)));
}

double scalar_of(const Tensor& tensor) {
  if (tensor.numel() != 1)
    throw Error(Errc::malformed, "a tensor has the shape " + to_string(tensor.shape()) + " instead of one number");
  double value = 0;
  tensor.to(DType::f64).read(0, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

Tensor scaled(const Tensor& tensor, double factor) {
  if (factor == 1) return tensor;
  const DType dtype = tensor.dtype();
  const std::uint64_t width = info(dtype).block_bytes;
  const auto change = [dtype, width, factor](std::span<std::byte> bytes) {
    std::vector<double> values(bytes.size() / width);
    kernels::cast(dtype, DType::f64, bytes, std::as_writable_bytes(std::span(values)));
    for (double& value : values) value *= factor;
    count_overflows(kernels::cast(DType::f64, dtype, std::as_bytes(std::span(values)), bytes));
  };
  return Tensor(dtype, tensor.shape(), transformed_storage(tensor, width, "times " + to_string(Json(factor)), change));
}

}  // namespace ballast::peft
