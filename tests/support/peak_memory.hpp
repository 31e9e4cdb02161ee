// How much memory some work takes at its peak.
#pragma once

#include <cstddef>
#include <functional>

namespace ballast::test {

// Runs the work in a process of its own, so that earlier peaks do not hide it. Returns the bytes by which the memory of
// that process grew. Under a sanitizer this cannot be measured, and 0 is returned.
std::size_t peak_memory_of(const std::function<void()>& work);

}  // namespace ballast::test
