// Glob: a shell pattern over whole names, read once and matched against many names.
//
//   *          any run of bytes, dots and slashes too
//   ?          any one byte
//   [a-z]      one byte of a set; [!a-z] one byte that is not in it
//   {a,b}      one of these patterns, which may hold everything that a pattern may hold, braces too
//   {0..31}    one of these numbers, also beside others: {0..3,7}
//   \*         a star; the same for ? [ ] { } , and the backslash itself
//
// What would be a set or a choice but is never closed stands for itself, and so do braces around neither a comma nor a
// range. No choice is ever written out: matching takes at most the length of the pattern times that of the name.
//
// A Glob is a value that owns its pattern. Several threads may match with one.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ballast {

class Glob {
 public:
  explicit Glob(std::string_view pattern);

  bool matches(std::string_view name) const;

 private:
  friend class GlobReader;

  struct Step {
    enum class Kind : std::uint8_t { byte, any, set, star, fork, jump };
    Kind kind = Kind::byte;
    unsigned char byte = 0;
    std::uint32_t to = 0;  // the number of a set; for a fork the other step, for a jump the one step that comes next
  };

  bool takes(const Step& step, char c) const noexcept;
  bool matches_straight(std::string_view name) const noexcept;
  bool matches_with_choices(std::string_view name) const;

  std::vector<Step> steps_;
  std::vector<std::bitset<256>> sets_;
  bool has_choices_ = false;
};

// Matches one name. A Glob is cheaper for many names.
bool glob_match(std::string_view pattern, std::string_view text);

bool matches_any(const std::vector<Glob>& globs, std::string_view name);

// Whether a pattern could match anything but its own text.
bool has_wildcards(std::string_view pattern);

}  // namespace ballast
