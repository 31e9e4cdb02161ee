// What servers say: headers, ranges, listings of repositories, addresses. Whatever the bytes are, they give values that
// stay within what was asked for, or an Error.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ballast/error.hpp>

#include "net/http_answer.hpp"
#include "stores/hub/address.hpp"
#include "stores/hub/listing.hpp"

namespace {

using namespace ballast;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

net::Headers headers_in(std::string_view text) {
  net::Headers headers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    headers.add_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return headers;
}

void look_at_headers(std::string_view text) {
  const net::Headers headers = headers_in(text);
  for (const net::WantedRange& wanted : {net::WantedRange{0, 100, false}, {1'000, 1, false}, {0, 65'557, true}}) {
    try {
      const net::Brought brought = net::check_partial(headers, wanted);
      require(brought.range.size <= wanted.size, "more than was asked for");
      require(wanted.is_suffix || brought.range.offset == wanted.offset, "another range than was asked for");
      require(!brought.total || brought.range.offset + brought.range.size <= *brought.total, "past the end");
    } catch (const Error&) {
    }
  }
  require(net::milliseconds_to_wait(headers, 100, 1) <= 60'000, "waits too long");
  static_cast<void>(net::parse_unsatisfied_range(headers.get("content-range")));
  static_cast<void>(hub::next_page(headers));
}

void look_at_listing(std::string_view text) {
  hub::Listing listing;
  try {
    hub::add_page(listing, text);
  } catch (const Error&) {
  }
  for (const hub::Entry& entry : listing.entries) {
    require(entry.path.find("..") == std::string::npos || hub::is_inner_path(entry.path), "leads out");
    require(entry.path.front() != '/', "leads out");
    require(entry.digest().find('/') == std::string::npos, "the digest is a path");
  }
}

void look_at_address(std::string_view text) {
  try {
    if (const auto address = hub::parse_address(text, "https://hub.example")) {
      require(hub::is_repository_name(address->repository), "no name of a repository");
      require(address->path.empty() || hub::is_inner_path(address->path), "leads out");
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0: look_at_headers(text); break;
    case 1: look_at_listing(text); break;
    default: look_at_address(text); break;
  }
  return 0;
}
