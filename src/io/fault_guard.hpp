// fault_while: looks at mapped bytes and survives the file shrinking, or its disk failing, under the map.
//
// If a mapped page cannot be read, the kernel answers with SIGBUS. The first use installs a handler for that signal,
// for the whole process and for good. The handler takes only faults of the calling thread inside a span that this
// thread is guarding; every other fault goes to the handler that was there before, or kills the process as it would
// have without us.
//
// If somebody installs another SIGBUS handler later, the protection is gone: install such handlers first, or call
// share_bus_errors(), which costs a system call for each guard.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

namespace ballast::io {

// From now on, each guard first puts our handler in front of one that was installed after it, such as Python's
// faulthandler. A fault that is not ours still reaches that handler, once.
void share_bus_errors();

namespace detail {
std::optional<std::size_t> fault_while(std::span<const std::byte> mapped, void (*look)(void*), void* context);
}

// Calls look(). Returns nothing if look() came to its end; else the offset in `mapped` of the byte that could not be
// read. In that case `look` was abandoned at that read without running destructors: between its reads of `mapped` it
// must own nothing (no containers, no locks). Guards nest, cost some nanoseconds, and let exceptions of `look` through.
template <class Look>
std::optional<std::size_t> fault_while(std::span<const std::byte> mapped, Look&& look) {
  using Callable = std::remove_reference_t<Look>;
  return detail::fault_while(
      mapped, [](void* callable) { (*static_cast<Callable*>(callable))(); },
      const_cast<void*>(static_cast<const void*>(std::addressof(look))));
}

}  // namespace ballast::io
