#include "net/http_answer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <ctime>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/text.hpp"

namespace ballast::net {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// "HTTP/1.1 206 Partial Content", "HTTP/2 206".
std::optional<int> status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return std::nullopt;
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto number = parse_number(line.substr(space + 1, 3));
  return number ? static_cast<int>(*number) : 0;
}

// The t of RateLimit: "resolvers";r=0;t=55
std::optional<std::uint64_t> seconds_of_rate_limit(std::string_view text) {
  const std::size_t at = text.find(";t=");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 3);
  const auto seconds = parse_number(rest.substr(0, rest.find_first_of(";, ")));
  return seconds ? std::optional(std::min<std::uint64_t>(*seconds, UINT32_MAX) + 1) : std::nullopt;
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<std::time_t> parse_date(const std::string& text) {
  std::tm time = {};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
  return end != nullptr && *end == '\0' ? std::optional(timegm(&time)) : std::nullopt;
}

// The server's own clock tells how far away its date is.
std::optional<std::uint64_t> seconds_until(const Headers& headers, std::string_view date) {
  const auto then = parse_date(std::string(date));
  if (!then) return std::nullopt;
  const std::time_t now = parse_date(std::string(headers.get("date"))).value_or(std::time(nullptr));
  return *then > now ? std::optional(static_cast<std::uint64_t>(*then - now)) : std::nullopt;
}

std::optional<std::uint64_t> seconds_asked_for(const Headers& headers) {
  if (const auto seconds = seconds_of_rate_limit(headers.get("ratelimit")); seconds && headers.status == 429)
    return seconds;
  const std::string_view after = headers.get("retry-after");
  if (const auto seconds = parse_number(after)) return seconds;
  return seconds_until(headers, after);
}

}  // namespace

void Headers::add_line(std::string_view line) {
  line = trimmed(line);
  if (const auto begun = status_of(line)) {
    *this = {};
    status = *begun;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name = lower_case(trimmed(line.substr(0, colon)));
  std::string value(trimmed(line.substr(colon + 1)));
  const bool must_agree = name == "content-length" || name == "content-range";
  const auto [entry, is_new] = fields.try_emplace(std::move(name), value);
  if (!is_new && must_agree && entry->second != value) contradicts_itself = true;
  if (!is_new) entry->second = std::move(value);
}

std::string_view Headers::get(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = parse_number(text.substr(0, dash)), last = parse_number(text.substr(dash + 1, slash - dash - 1));
  const std::string_view total = text.substr(slash + 1);
  const auto number = parse_number(total);
  if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
  if (total != "*" && (!number || *last >= *number)) return std::nullopt;
  return ContentRange{*first, *last, number};
}

std::optional<std::uint64_t> parse_unsatisfied_range(std::string_view text) {
  constexpr std::string_view kBegin = "bytes */";
  return text.starts_with(kBegin) ? parse_number(text.substr(kBegin.size())) : std::nullopt;
}

std::string_view strong_etag(const Headers& headers) {
  const std::string_view etag = headers.get("etag");
  return etag.size() > 2 && etag.front() == '"' && etag.back() == '"' ? etag : std::string_view();
}

std::string WantedRange::text() const {
  return is_suffix ? fmt::format("-{}", size) : fmt::format("{}-{}", offset, offset + size - 1);
}

Brought check_partial(const Headers& headers, const WantedRange& wanted) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Errc::io, fmt::format("the server's answer to bytes={} makes no sense: {}", wanted.text(), why));
  };
  if (headers.contradicts_itself) refuse("it says two different things");
  const std::string_view encoding = headers.get("content-encoding");
  if (!encoding.empty() && encoding != "identity") refuse("it is compressed");
  if (headers.get("content-type").starts_with("multipart/")) refuse("it is in several parts");
  const auto range = parse_content_range(headers.get("content-range"));
  if (!range) refuse(fmt::format("Content-Range is \"{}\"", headers.get("content-range").substr(0, 100)));
  const std::uint64_t size = range->last - range->first + 1;
  const auto length = headers.get("content-length");
  if (!length.empty() && parse_number(length) != size) refuse("its length is not that of its range");
  if (wanted.is_suffix) {
    const bool is_end =
        range->total && range->last + 1 == *range->total && size == std::min(wanted.size, *range->total);
    if (!is_end) refuse("it is not the end of the file");
  } else {
    const bool is_cut = size < wanted.size && range->total && range->last + 1 == *range->total;
    if (range->first != wanted.offset || size > wanted.size || (size < wanted.size && !is_cut)) {
      refuse(fmt::format("it is for bytes {}-{}", range->first, range->last));
    }
  }
  return {{range->first, size}, range->total};
}

unsigned milliseconds_to_wait(const Headers& headers, unsigned attempt, double jitter) {
  constexpr unsigned kFirst = 500, kMost = 8'000, kMostAsked = 60'000;
  if (const auto seconds = seconds_asked_for(headers))
    return static_cast<unsigned>(std::min<std::uint64_t>(*seconds, kMostAsked / 1000) * 1000);
  const unsigned grown = std::min(kFirst << std::min(attempt, 8u), kMost);
  return static_cast<unsigned>(grown * (0.5 + 0.5 * jitter));
}

bool is_worth_repeating(int status) {
  constexpr std::array kTransient = {408, 425, 429, 500, 502, 503, 504};
  return std::find(kTransient.begin(), kTransient.end(), status) != kTransient.end();
}

}  // namespace ballast::net
