#include "tensor/transformed_storage.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace ballast {
namespace {

constexpr std::uint64_t kWidest = 16;  // complex128

class TransformedStorage final : public Storage {
 public:
  TransformedStorage(Tensor source, std::uint64_t element_bytes, std::string step,
                     std::function<void(std::span<std::byte>)> change)
      : source_(std::move(source)), element_bytes_(element_bytes), step_(std::move(step)), change_(std::move(change)) {
    assert(element_bytes_ >= 1 && element_bytes_ <= kWidest && source_.nbytes() % element_bytes_ == 0);
  }

  std::uint64_t size_bytes() const override { return source_.nbytes(); }
  std::uint64_t granule() const override { return element_bytes_; }
  bool is_sequential() const override { return source_.storage() && source_.storage()->is_sequential(); }
  Derivation derivation() const override { return {step_, {&source_}}; }
  bool has_data() const override { return source_.has_data(); }
  void prepare(const Progress& progress) const override {
    if (source_.storage()) source_.storage()->prepare(progress);
  }
  void check_unchanged() const override {
    if (source_.storage()) source_.storage()->check_unchanged();
  }

  // Whole elements where they are wanted; those that the range cuts are made beside it.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (const std::uint64_t skip = offset % element_bytes_; skip != 0 || out.size() < element_bytes_) {
      const std::size_t taken = read_part(offset - skip, skip, out);
      offset += taken;
      out = out.subspan(taken);
    }
    const std::size_t whole = out.size() - out.size() % element_bytes_;
    if (whole != 0) {
      source_.read(offset, out.first(whole));
      change_(out.first(whole));
    }
    if (whole != out.size()) read_part(offset + whole, 0, out.subspan(whole));
  }

 private:
  std::size_t read_part(std::uint64_t element, std::uint64_t skip, std::span<std::byte> out) const {
    std::array<std::byte, kWidest> buffer;
    const auto whole = std::span(buffer).first(static_cast<std::size_t>(element_bytes_));
    const std::size_t taken = std::min(out.size(), static_cast<std::size_t>(element_bytes_ - skip));
    if (taken == 0) return 0;
    source_.read(element, whole);
    change_(whole);
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skip), taken, out.begin());
    return taken;
  }

  Tensor source_;
  std::uint64_t element_bytes_;
  std::string step_;
  std::function<void(std::span<std::byte>)> change_;
};

}  // namespace

StoragePtr transformed_storage(Tensor source, std::uint64_t element_bytes, std::string step,
                               std::function<void(std::span<std::byte>)> change) {
  return std::make_shared<TransformedStorage>(std::move(source), element_bytes, std::move(step), std::move(change));
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
