#include "kernels/packed/runs.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/runs.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;  // so that the last few are rounded as the others are

template <RunStep kStep, class Vector>
HWY_INLINE Vector step_one(Vector value, Vector number) {
  if constexpr (kStep == RunStep::add) return hn::Add(value, number);
  if constexpr (kStep == RunStep::subtract) return hn::Sub(value, number);
  if constexpr (kStep == RunStep::multiply) return hn::Mul(value, number);
}

// One number for all of the values.
template <RunStep kStep>
HWY_INLINE void step_run(float* values, std::size_t count, float number) {
  const Floats d;
  const auto numbers = hn::Set(d, number);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    hn::StoreU(step_one<kStep>(hn::LoadU(d, values + i), numbers), d, values + i);
  const OneFloat one;
  for (; i < count; ++i) hn::StoreU(step_one<kStep>(hn::LoadU(one, values + i), hn::Set(one, number)), one, values + i);
}

// A number for each of the values.
template <RunStep kStep>
HWY_INLINE void step_each(float* values, std::size_t count, const float* numbers) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    hn::StoreU(step_one<kStep>(hn::LoadU(d, values + i), hn::LoadU(d, numbers + i)), d, values + i);
  const OneFloat one;
  for (; i < count; ++i)
    hn::StoreU(step_one<kStep>(hn::LoadU(one, values + i), hn::LoadU(one, numbers + i)), one, values + i);
}

constexpr std::uint64_t kShortRun = 64;

template <RunStep kStep>
void step_all(float* values, std::size_t count, const float* numbers, std::uint64_t run, std::uint64_t first) {
  numbers += first / run;
  if (run == 1) return step_each<kStep>(values, count, numbers);
  const Floats d;
  if (first % run == 0 && run <= kShortRun && run % hn::Lanes(d) == 0 && count % run == 0) {
    for (const float* end = values + count; values != end; ++numbers)
      for (const float* next = values + run; values != next; values += hn::Lanes(d))
        hn::StoreU(step_one<kStep>(hn::LoadU(d, values), hn::Set(d, *numbers)), d, values);
    return;
  }
  std::uint64_t left = run - first % run;  // of the run that is begun
  while (count != 0) {
    const std::size_t size = left < count ? static_cast<std::size_t>(left) : count;
    step_run<kStep>(values, size, *numbers++);
    values += size;
    count -= size;
    left = run;
  }
}

void step_runs_on(RunStep step, float* values, std::size_t count, const float* numbers, std::uint64_t run,
                  std::uint64_t first) {
  switch (step) {
    case RunStep::add: return step_all<RunStep::add>(values, count, numbers, run, first);
    case RunStep::subtract: return step_all<RunStep::subtract>(values, count, numbers, run, first);
    case RunStep::multiply: return step_all<RunStep::multiply>(values, count, numbers, run, first);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {
HWY_EXPORT(step_runs_on);
}  // namespace

void step_runs(RunStep step, std::span<float> values, const float* numbers, std::uint64_t run,
               std::uint64_t first) noexcept {
  HWY_DYNAMIC_DISPATCH(step_runs_on)(step, values.data(), values.size(), numbers, run, first);
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
