// PackedParts: whether a tensor is a part of a quantized weight, or made of one.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

class PackedParts {
 public:
  explicit PackedParts(const Checkpoint& checkpoint);  // the checkpoint must outlive this object

  bool contain(const Tensor& tensor) const;

  // Throws Errc::unsupported for a tensor that is such a part: "tensor "x" is a part of a weight that is quantized with
  // gptq: it cannot be …".
  void refuse(std::string_view name, const Tensor& tensor, std::string_view what) const;

  // The same for a weight that is not there because only its parts are.
  void refuse_weight(std::string_view name, std::string_view what) const;

 private:
  [[noreturn]] void throw_refusal(std::string_view name, std::string_view part_or_weight, std::string_view what) const;

  using Range = std::pair<std::uint64_t, std::uint64_t>;  // the first byte, and the byte behind the last
  const Checkpoint& checkpoint_;
  std::map<const Storage*, std::vector<Range>> ranges_;  // sorted
};

}  // namespace ballast
