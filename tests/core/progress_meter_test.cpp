#include "core/progress_meter.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace ballast {
namespace {

TEST(ProgressMeter, KeepsItsFunctionEvenIfACallerPassesATemporary) {
  const auto last = std::make_shared<std::uint64_t>(0);
  ProgressMeter meter([last](const ProgressState& state) { return *last = state.done_bytes, true; }, "loading", 10);
  EXPECT_EQ(last.use_count(), 2);
  meter.add(3);
  meter.add(4);
  EXPECT_EQ(*last, 7u);

  ProgressMeter nobody_watches({}, "loading", 10);
  EXPECT_NO_THROW(nobody_watches.add(3));
}

TEST(ProgressMeter, ThrowsWhenItIsToldToStop) {
  ProgressMeter meter([](const ProgressState&) { return false; }, "loading", 10);
  EXPECT_THROW(meter.add(1), Error);
}

}  // namespace
}  // namespace ballast
