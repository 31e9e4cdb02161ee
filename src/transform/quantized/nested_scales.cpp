#include "transform/quantized/nested_scales.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/once.hpp"
#include "kernels/quantize.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

constexpr std::size_t kGroup = 256;
using Map = std::array<float, 256>;

// Seven decades, each with twice as many codes as the one below it: the middles between 2^i + 1 evenly spaced numbers
// from 0.1 to 1. The numbers are counted from the nearer end, as torch.linspace does.
Map make_map() {
  std::vector<float> values = {0, 1};
  int count = 1;
  for (const float decade : {1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1.0F}) {
    const float step = (1 - 0.1F) / static_cast<float>(count);
    const auto boundary = [&](int j) {  // rounded once
      const double far = static_cast<double>(step) * (j < (count + 1) / 2 ? j : count - j);
      return static_cast<float>(j < (count + 1) / 2 ? static_cast<double>(0.1F) + far : 1 - far);
    };
    for (int j = 0; j < count; ++j) {
      const float middle = decade * ((boundary(j) + boundary(j + 1)) / 2);
      values.push_back(middle);
      values.push_back(-middle);
    }
    count *= 2;
  }
  std::ranges::sort(values);
  Map map{};
  std::ranges::copy(values, map.begin());
  return map;
}

const Map& nested_map() {
  static const Map map = make_map();
  return map;
}

// The nearest code; of two that are as near, the lower one.
std::uint8_t code_of(float value) {
  const Map& map = nested_map();
  const auto above = std::ranges::lower_bound(map, value);
  if (above == map.begin()) return 0;
  if (above == map.end()) return 255;
  const auto below = above - 1;
  return static_cast<std::uint8_t>((value - *below <= *above - value ? below : above) - map.begin());
}

// The mean of all scales, found once.
class Mean {
 public:
  explicit Mean(Tensor scales) : scales_(std::move(scales)) {}

  const Tensor& scales() const noexcept { return scales_; }

  float value() const {
    once_.run([&] {
      std::vector<float> some(std::min<std::uint64_t>(scales_.numel(), 4096));
      double sum = 0;
      for (std::uint64_t first = 0; first < scales_.numel(); first += some.size()) {
        const auto part = std::span(some).first(std::min<std::uint64_t>(some.size(), scales_.numel() - first));
        scales_.read(first * sizeof(float), std::as_writable_bytes(part));
        for (const float scale : part) sum += static_cast<double>(scale);
      }
      value_ = static_cast<float>(sum / static_cast<double>(scales_.numel()));
    });
    return value_;
  }

 private:
  Tensor scales_;
  mutable Once once_;
  mutable float value_ = 0;
};

using MeanPtr = std::shared_ptr<const Mean>;

// What is made of a group of scales: their codes, or the scale of these.
class NestedStorage final : public DerivedStorage {
 public:
  enum class What : std::uint8_t { codes, scales };
  NestedStorage(MeanPtr mean, What what)
      : DerivedStorage({mean->scales()}, what == What::codes ? "quantize the scales" : "scales of the scales"),
        mean_(std::move(mean)),
        what_(what),
        count_(mean_->scales().numel()) {}

  std::uint64_t size_bytes() const override {
    return what_ == What::codes ? count_ : (count_ + kGroup - 1) / kGroup * sizeof(float);
  }
  std::uint64_t granule() const override { return bytes_of_group(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t group = offset / bytes_of_group(), skip = offset % bytes_of_group();
      std::array<std::byte, kGroup> made;
      const std::size_t size = std::min<std::size_t>(make(group, made) - skip, out.size());
      std::memcpy(out.data(), made.data() + skip, size);
      offset += size;
      out = out.subspan(size);
    }
  }

 private:
  std::uint64_t bytes_of_group() const { return what_ == What::codes ? kGroup : sizeof(float); }

  std::size_t make(std::uint64_t group, std::span<std::byte> out) const {
    const float mean = mean_->value();
    std::array<float, kGroup> all;
    const auto scales = std::span(all).first(std::min<std::uint64_t>(kGroup, count_ - group * kGroup));
    mean_->scales().read(group * kGroup * sizeof(float), std::as_writable_bytes(scales));
    for (float& scale : scales) scale -= mean;
    const float largest = kernels::largest_magnitude(scales);
    if (what_ == What::scales) {
      std::memcpy(out.data(), &largest, sizeof largest);
      return sizeof largest;
    }
    const float inverse = 1 / largest;
    for (std::size_t i = 0; i < scales.size(); ++i)
      out[i] = static_cast<std::byte>(code_of(std::clamp(scales[i] * inverse, -1.0F, 1.0F)));
    return scales.size();
  }

  MeanPtr mean_;
  What what_;
  std::uint64_t count_;
};

// The mean as text, behind spaces: how long the text is must be known before the mean is.
class MeanText final : public DerivedStorage {
 public:
  static constexpr std::size_t kBytes = 24;  // "-1.2345678901234567e-308"
  explicit MeanText(MeanPtr mean)
      : DerivedStorage({mean->scales()}, "the mean of the scales as text"), mean_(std::move(mean)) {}

  std::uint64_t size_bytes() const override { return kBytes; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::string text = fmt::format("{:>24}", static_cast<double>(mean_->value()));
    std::memcpy(out.data(), text.data() + offset, out.size());
  }

 private:
  MeanPtr mean_;
};

Tensor text_part(std::string_view text) {
  return Tensor::from_bytes(DType::u8, {text.size()}, std::as_bytes(std::span(text)));
}

}  // namespace

NestedScales nested_scales(const Tensor& scales, const std::string& state) {
  const auto mean = std::make_shared<const Mean>(scales);
  const std::uint64_t count = scales.numel(), groups = (count + kGroup - 1) / kGroup;
  using What = NestedStorage::What;
  const Tensor offset(DType::u8, {MeanText::kBytes}, std::make_shared<MeanText>(mean));
  constexpr std::string_view kNested = R"(, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": )";
  return {Tensor(DType::u8, {count}, std::make_shared<NestedStorage>(mean, What::codes)),
          Tensor(DType::f32, {groups}, std::make_shared<NestedStorage>(mean, What::scales)),
          Tensor::from_values<float>(DType::f32, {256}, nested_map()),
          concatenated({text_part(state + std::string(kNested)), offset, text_part("}")}, 0)};
}

}  // namespace ballast
