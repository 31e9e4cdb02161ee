// fault_while: looks at mapped bytes and survives the file shrinking, or its disk failing, under the map.
//
// The kernel answers a read of a mapped page that cannot be had with SIGBUS. On first use a handler for that signal is
// installed, for the whole process and for good. It takes only faults of the calling thread inside a span that this
// thread is guarding; every other one goes to the handler that was there before, or kills the process as it would have
// without us.
//
// A SIGBUS handler that somebody installs later and that does not chain to ours takes the protection away. Putting ours
// on top again could make the two call each other for ever, so that is not done: install such handlers first.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

namespace ballast::io {

namespace detail {
std::optional<std::size_t> fault_while(std::span<const std::byte> mapped, void (*look)(void*), void* context);
}

// Calls look(). Nothing, if it came to its end; else the offset in `mapped` of the byte that could not be read. In that
// case `look` was abandoned where it stood without running destructors: between its reads of `mapped` it must own
// nothing (no containers, no locks). Guards nest, cost some nanoseconds, and let exceptions of `look` through.
template <class Look>
std::optional<std::size_t> fault_while(std::span<const std::byte> mapped, Look&& look) {
  using Callable = std::remove_reference_t<Look>;
  return detail::fault_while(
      mapped, [](void* callable) { (*static_cast<Callable*>(callable))(); },
      const_cast<void*>(static_cast<const void*>(std::addressof(look))));
}

}  // namespace ballast::io
