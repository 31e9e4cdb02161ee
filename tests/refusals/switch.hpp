// The switches that find_refusals.py puts into the conditions of refusals. One change is active, by its number in
// BALLAST_REFUSAL. The file BALLAST_REFUSALS_SEEN has a byte for each change, which is marked if the change would have
// made a difference: no test can notice a change that never does.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <concepts>
#include <cstdlib>
#include <type_traits>

// A bound loses its type on the way into a function. Flags of the compiler would say this, too, but files that stay as
// they are would then be no longer in ccache.
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace ballast_refusals {

struct Switches {
  int active = 0;
  volatile char* seen = nullptr;
  int count = 0;
};

inline Switches read_switches() {
  Switches switches;
  if (const char* number = std::getenv("BALLAST_REFUSAL")) switches.active = std::atoi(number);
  const char* path = std::getenv("BALLAST_REFUSALS_SEEN");
  const int fd = path != nullptr ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return switches;
  const auto size = static_cast<std::size_t>(lseek(fd, 0, SEEK_END));
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);  // survives a crash
  if (mapped != MAP_FAILED) switches.seen = static_cast<volatile char*>(mapped);
  switches.count = static_cast<int>(size);
  close(fd);
  return switches;
}

inline const Switches& switches() {
  static const Switches all = read_switches();
  return all;
}

enum Seen : char { kNever, kMakesADifference, kMeansNothing };

inline void see(int number, Seen seen) {
  const Switches& all = switches();
  if (all.seen != nullptr && number < all.count) all.seen[number] = seen;
}

inline bool pick(int number, bool as_it_is, bool changed) {
  if (as_it_is != changed) see(number, kMakesADifference);
  return number == switches().active ? changed : as_it_is;
}

constexpr bool change(int number, bool as_it_is, bool changed) {
  return std::is_constant_evaluated() ? as_it_is : pick(number, as_it_is, changed);
}

inline bool is_off(int number) { return pick(number, false, true); }

// Moves the bound b by one: up with the change of this number, down with the next.
constexpr bool bound(int number, bool as_it_is, bool one_more, bool one_less) {
  const bool first = change(number, as_it_is, one_more), second = change(number + 1, as_it_is, one_less);
  return first != as_it_is ? first : second;
}

template <class A, class B>
constexpr bool is_one_more(const A& a, const B& b) {  // for a > b
  if constexpr (requires { a - b == 1; }) return a - b == 1;
  return false;
}

constexpr bool less(int number, const auto& a, const auto& b) {
  return bound(number, a < b, a < b || a == b, a < b && !is_one_more(b, a));
}

constexpr bool at_most(int number, const auto& a, const auto& b) {
  return bound(number, a <= b, a <= b || is_one_more(a, b), a < b);
}

constexpr bool greater(int number, const auto& a, const auto& b) {
  return bound(number, a > b, a > b && !is_one_more(a, b), a > b || a == b);
}

constexpr bool at_least(int number, const auto& a, const auto& b) {
  return bound(number, a >= b, a > b, a >= b || is_one_more(b, a));
}

// Sizes and offsets. Any other number stands for something, and the number after it for something else.
template <class T>
concept Size = std::unsigned_integral<T> && sizeof(T) == 8;

template <class A, class B>
concept Sizes = (Size<A> && std::integral<B>) || (std::integral<A> && Size<B>);

constexpr bool is_the_same(int number, const auto& a, const auto& b) {
  if (!std::is_constant_evaluated()) see(number, kMeansNothing);
  return a == b;
}

template <class A, class B>
constexpr bool equals(int number, const A& a, const B& b) {
  if constexpr (Sizes<A, B>) return change(number, a == b, a - b <= 1 || b - a <= 1);
  return is_the_same(number, a, b);
}

constexpr bool differs(int number, const auto& a, const auto& b) { return !equals(number, a, b); }

// Changes a limit that is compared with every number on the way to it.
template <class A, class B>
constexpr bool reaches(int number, const A& a, const B& b) {
  if constexpr (Sizes<A, B>) return change(number, a == b, a - b == 1);
  return is_the_same(number, a, b);
}

}  // namespace ballast_refusals
