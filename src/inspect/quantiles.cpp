#include "inspect/quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/deal.hpp"
#include "core/thread_pool.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostCountBytes = std::size_t{64} << 20;

}  // namespace

void check_quantiles(std::span<const double> quantiles) {
  if (quantiles.size() > kMostQuantiles)
    throw Error(Errc::invalid_argument, fmt::format("{} quantiles are asked for, and at most {} are found at once",
                                                    quantiles.size(), kMostQuantiles));
  for (const double quantile : quantiles) {
    if (!(quantile >= 0 && quantile <= 1))
      throw Error(Errc::invalid_argument, fmt::format("{} is no quantile", quantile))
          .hint("a quantile is a number from 0 to 1: 0.5 is the median");
  }
}

QuantileSearch::QuantileSearch(DType dtype, std::span<const double> quantiles) : dtype_(dtype) {
  for (const double quantile : quantiles) wanted_.push_back({quantile});
}

unsigned QuantileSearch::workers(unsigned threads) const noexcept {
  const std::size_t bytes = prefixes_.all().size() * kernels::kKeyDigits * sizeof(std::uint64_t);
  const auto most = static_cast<unsigned>(std::max<std::size_t>(kMostCountBytes / bytes, 1));
  return std::min(threads == 0 ? available_threads() : threads, most);
}

void QuantileSearch::begin_pass(unsigned workers) {
  counts_.assign(workers, std::vector<std::uint64_t>(prefixes_.all().size() * kernels::kKeyDigits));
}

// The first value whose share of the values up to itself is at least the quantile: NumPy's "inverted_cdf".
void QuantileSearch::set_ranks(std::span<const std::uint64_t> counts) {
  total_ = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (total_ == 0) return;
  for (Wanted& wanted : wanted_) {
    const double position = std::ceil(static_cast<double>(total_) * wanted.quantile) - 1;
    wanted.rank = position > 0 ? std::min(static_cast<std::uint64_t>(position), total_ - 1) : 0;
  }
}

void QuantileSearch::end_pass(Team& team) {
  std::vector<std::uint64_t> counts = std::move(counts_.front());
  for (std::size_t worker = 1; worker < counts_.size(); ++worker)
    std::ranges::transform(counts, counts_[worker], counts.begin(), std::plus());
  counts_.clear();
  add_up(team, counts);
  if (prefixes_.length() == 0) set_ranks(counts);
  if (total_ == 0) return;

  std::vector<std::uint64_t> longer;
  for (Wanted& wanted : wanted_) {
    const auto number = std::ranges::lower_bound(prefixes_.all(), wanted.prefix) - prefixes_.all().begin();
    const auto of_prefix = std::span(counts).subspan(static_cast<std::size_t>(number) * kernels::kKeyDigits);
    std::uint64_t digit = 0;
    for (; wanted.rank >= of_prefix[digit]; ++digit) wanted.rank -= of_prefix[digit];
    wanted.prefix = wanted.prefix << kernels::kKeyDigitBits | digit;
    longer.push_back(wanted.prefix);
  }
  std::ranges::sort(longer);
  longer.erase(std::unique(longer.begin(), longer.end()), longer.end());
  prefixes_ = kernels::KeyPrefixes(prefixes_.length() + 1, std::move(longer));
}

std::vector<Quantile> QuantileSearch::quantiles() const {
  std::vector<Quantile> found;
  for (const Wanted& wanted : wanted_) {
    found.push_back({wanted.quantile, std::nullopt});
    if (total_ != 0) found.back().value = kernels::value_of_key(dtype_, wanted.prefix);
  }
  return found;
}

}  // namespace ballast
