// Statistics that a server keeps while it runs: of a hundred thousand tensors, so in little room.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ballast/stats.hpp>

namespace ballast::cli {

// What the page asks for: counts, moments, norms, and a histogram.
class KeptStats {
 public:
  bool is_known() const noexcept { return state_ != State::unknown; }
  void keep(const TensorStats& computed);
  TensorStats of(std::string name) const;  // must be known

 private:
  enum class State : std::uint8_t { unknown, none, whole };

  State state_ = State::unknown;
  std::array<std::uint64_t, 4> counts_ = {};
  std::array<double, 8> numbers_ = {};
  // A bin has 32 bits: a tensor with more values than that in one bin keeps its histogram in halves.
  std::vector<std::uint32_t> histogram_;
  bool has_halves_ = false;
};

}  // namespace ballast::cli
