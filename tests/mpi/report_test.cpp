#include <gtest/gtest.h>

#include <ballast/mpi.hpp>

namespace ballast::test {
namespace {

using mpi::RankReport, mpi::RankTraffic;

TEST(ARankReport, SaysHowFarTheBusiestRankIsAboveTheMean) {
  const RankReport report{{{.read = 100}, {.read = 300}, {.read = 200}}};
  EXPECT_DOUBLE_EQ(report.imbalance(&RankTraffic::read), 1.5);
  EXPECT_DOUBLE_EQ(report.imbalance(&RankTraffic::written), 1);
  EXPECT_EQ(report.total().read, 600u);
}

TEST(ARankReport, IsATableWithALineForEachRankAndNoColumnOfNothing) {
  const RankReport report{{{.read = 3000, .sent = 1000, .held = 2000}, {.opening = 7, .read = 1000, .twice = 10}}};
  EXPECT_EQ(to_string(report),
            "             opening       read       sent       held      twice\n"
            "rank 0           0 B    3.00 kB    1.00 kB    2.00 kB        0 B\n"
            "rank 1           7 B    1.00 kB        0 B        0 B       10 B\n"
            "all              7 B    4.00 kB    1.00 kB    2.00 kB       10 B\n"
            "imbalance      2.000      1.500      2.000      2.000      2.000\n");
}

}  // namespace
}  // namespace ballast::test
