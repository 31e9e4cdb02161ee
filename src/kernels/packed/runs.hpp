// Floats scaled and moved by numbers that runs of them share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

enum class RunStep : std::uint8_t { add, subtract, multiply };

// values[i] = values[i] step numbers[(first + i) / run], each result rounded once. `run` is at least 1; `numbers` has
// all numbers that this asks for.
void step_runs(RunStep step, std::span<float> values, const float* numbers, std::uint64_t run,
               std::uint64_t first = 0) noexcept;

}  // namespace ballast::kernels
