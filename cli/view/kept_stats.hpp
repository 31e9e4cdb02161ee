// Statistics that a server keeps while it runs: of a hundred thousand tensors, so in little room.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ballast/stats.hpp>

namespace ballast::cli {

// What the page asks for: counts, moments, norms, and of a tensor that was looked at, a histogram.
class KeptStats {
 public:
  // Whether nothing has to be computed, with a histogram or without one.
  bool is_known(bool with_histogram) const noexcept {
    return state_ == State::none || (state_ == State::whole && (!with_histogram || !histogram_.empty()));
  }
  void keep(const TensorStats& computed);
  TensorStats of(std::string name, bool with_histogram) const;  // must be known

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
