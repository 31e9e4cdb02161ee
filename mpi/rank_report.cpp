#include <ballast/mpi.hpp>
#include <ballast/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace ballast::mpi {
namespace {

using Number = std::uint64_t RankTraffic::*;

constexpr std::array<std::pair<std::string_view, Number>, 7> kColumns = {{
    {"opening", &RankTraffic::opening},
    {"read", &RankTraffic::read},
    {"sent", &RankTraffic::sent},
    {"received", &RankTraffic::received},
    {"written", &RankTraffic::written},
    {"held", &RankTraffic::held},
    {"twice", &RankTraffic::twice},
}};

// The numbers of `total` that are none are left out: nobody did that, or nobody counted it.
template <class Cell>
std::string row(const RankTraffic& total, std::string_view name, const Cell& cell) {
  std::string line = fmt::format("{:<9}", name);
  for (const auto& [heading, number] : kColumns) {
    if (total.*number != 0) line += fmt::format(" {:>10}", cell(heading, number));
  }
  return line + '\n';
}

}  // namespace

RankTraffic RankReport::total() const {
  RankTraffic sum;
  for (const RankTraffic& rank : ranks) {
    for (const auto& [heading, number] : kColumns) sum.*number += rank.*number;
  }
  return sum;
}

double RankReport::imbalance(Number number) const {
  const std::uint64_t sum = total().*number;
  if (sum == 0) return 1;
  const auto most = std::ranges::max_element(ranks, {}, [&](const RankTraffic& rank) { return rank.*number; });
  return static_cast<double>((*most).*number) * static_cast<double>(ranks.size()) / static_cast<double>(sum);
}

std::string to_string(const RankReport& report) {
  const RankTraffic total = report.total();
  std::string text = row(total, "", [](std::string_view heading, Number) { return std::string(heading); });
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    text += row(total, fmt::format("rank {}", rank),
                [&](std::string_view, Number number) { return format_bytes(report.ranks[rank].*number); });
  }
  text += row(total, "all", [&](std::string_view, Number number) { return format_bytes(total.*number); });
  text += row(total, "imbalance",
              [&](std::string_view, Number number) { return fmt::format("{:.3f}", report.imbalance(number)); });
  return text;
}

}  // namespace ballast::mpi
