// What a server says about the bytes that it sends: the headers of an answer, and whether they fit what was asked.
//
// Everything here comes from a stranger, so nothing of it is believed that does not agree with the request and with the
// answers before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/range.hpp>

namespace ballast::net {

// A status line and headers, by lower-case names; of headers that come twice, the last one, except that a second
// Content-Length or Content-Range that differs makes the answer unreadable.
struct Headers {
  int status = 0;
  std::map<std::string, std::string, std::less<>> fields;
  bool contradicts_itself = false;

  // One line, as it comes, with or without its line end. A new status line begins anew.
  void add_line(std::string_view line);
  std::string_view get(std::string_view name) const;  // empty if it is missing
};

// "bytes 0-65535/1048576"; the total is missing for "*".
struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// The total in "bytes */1048576", which comes with status 416.
std::optional<std::uint64_t> parse_unsatisfied_range(std::string_view text);

// Digits only, and no more than 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text);

// An ETag that stands for exact bytes; empty if it is weak or missing.
std::string_view strong_etag(const Headers& headers);

// What is asked for: `size` bytes from `offset`, or the last `size` bytes.
struct WantedRange {
  std::uint64_t offset = 0, size = 0;
  bool is_suffix = false;

  std::string text() const;  // "0-65535", "-65557"
};

// The bytes that an answer with status 206 brings. Throws Errc::io, for an answer that does not fit the question.
struct Brought {
  ByteRange range;
  std::optional<std::uint64_t> total;
};
Brought check_partial(const Headers& headers, const WantedRange& wanted);

// How many milliseconds to wait before asking again: until the window that RateLimit speaks of is over, or as long as
// Retry-After says (in seconds, or until a date), at most a minute; else a time that grows with the number of attempts,
// with some jitter.
unsigned milliseconds_to_wait(const Headers& headers, unsigned attempt, double jitter);

// Whether asking again may help.
bool is_worth_repeating(int status);

}  // namespace ballast::net
