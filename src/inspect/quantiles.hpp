// QuantileSearch: finds exact quantiles by counting, one digit of the values' sortable bits a pass.
//
// The memory does not depend on the tensor's size. The result does not depend on the number of threads, since counts
// can be added up in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>
#include <ballast/stats.hpp>
#include <ballast/team.hpp>

#include "kernels/key_counts.hpp"

namespace ballast {

// Throws Errc::invalid_argument unless there are at most kMostQuantiles numbers from 0 to 1.
void check_quantiles(std::span<const double> quantiles);

class QuantileSearch {
 public:
  QuantileSearch(DType dtype, std::span<const double> quantiles);

  // How many passes over the values it takes.
  static unsigned passes(DType dtype) noexcept { return kernels::key_length(dtype); }

  // A pass is: begin_pass(), count() for all bytes of the tensor by at most workers() threads of each member of a team,
  // end_pass().
  bool is_done() const noexcept { return prefixes_.length() == passes(dtype_) || total_ == 0; }
  unsigned workers(unsigned threads) const noexcept;
  void begin_pass(unsigned workers);
  void count(unsigned worker, std::span<const std::byte> bytes) noexcept {
    kernels::count_keys(counts_[worker], prefixes_, dtype_, bytes);
  }
  void end_pass(Team& team);

  std::vector<Quantile> quantiles() const;

 private:
  struct Wanted {
    double quantile;
    std::uint64_t rank = 0;    // among the values that begin with `prefix`, counted from 0
    std::uint64_t prefix = 0;  // the digits that are known
  };

  void set_ranks(std::span<const std::uint64_t> counts);

  DType dtype_;
  std::vector<Wanted> wanted_;
  kernels::KeyPrefixes prefixes_;
  std::vector<std::vector<std::uint64_t>> counts_;  // for each worker
  std::uint64_t total_ = 1;                         // values that are not NaN; known after the first pass
};

}  // namespace ballast
