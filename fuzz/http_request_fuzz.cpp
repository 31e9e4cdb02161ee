// The head of a request to the page of `view`: whatever it says, it is a request or an Error, and the gate lets in only
// who names this server, comes from nowhere else, and knows one of the two secrets.
//
// The secrets are random, so an input says TOKEN and COOKIE where they belong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ballast/error.hpp>

#include "gate.hpp"
#include "http.hpp"

namespace {

using ballast::Errc;
using ballast::Error;
using ballast::cli::Gate;
using ballast::cli::HttpRequest;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void replace_all(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
}

std::string_view value_of(const HttpRequest& request, std::string_view name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

void check_parts(const HttpRequest& request, std::size_t head_bytes) {
  require(request.path.starts_with('/'), "a path that does not begin at the root");
  std::size_t bytes = request.path.size();
  for (const std::string_view part : request.parts()) require(part.find('/') == part.npos, "a part with a slash in it");
  for (const auto& [key, value] : request.query) bytes += key.size() + value.size();
  for (const auto& [name, value] : request.headers) {
    bytes += name.size() + value.size();
    require(!name.empty() && name.find_first_of(": \t\r\n") == name.npos, "a header without a name");
    require(value.find_first_of("\r\n") == value.npos, "a header of two lines");
    for (const char c : name) require(c < 'A' || c > 'Z', "a header's name with a capital");
  }
  require(bytes <= head_bytes, "a request that is longer than its head");
}

void check_verdict(const HttpRequest& request, Gate::Verdict verdict, const std::string& token,
                   const std::string& cookie) {
  if (verdict != Gate::Verdict::enter && verdict != Gate::Verdict::known) return;
  const std::string host(value_of(request, "host")), origin(value_of(request, "origin"));
  require(host == "127.0.0.1:8000" || host == "localhost:8000", "let in for another host");
  require(origin.empty() || origin == "http://" + host, "let in from another origin");
  if (verdict == Gate::Verdict::enter)
    return require(request.path == "/" && request.query.at("token") == token, "let in without the token");
  require(value_of(request, "cookie").find("ballast-8000=" + cookie) != std::string_view::npos,
          "let in without the cookie");
  const std::string_view site = value_of(request, "sec-fetch-site");
  require(site.empty() || site == "same-origin" || site == "none", "let in from a page of another site");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Gate gate(8000);
  static const std::string token = gate.address().substr(gate.address().find('=') + 1);
  static const std::string cookie = gate.set_cookie().substr(13, gate.set_cookie().find(';') - 13);
  std::string head(reinterpret_cast<const char*>(data), size);
  replace_all(head, "TOKEN", token);
  replace_all(head, "COOKIE", cookie);
  try {
    const HttpRequest request = ballast::cli::parse_request(head);
    check_parts(request, head.size());
    check_verdict(request, gate.judge(request), token, cookie);
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported, "an odd kind of error");
    require(error.message().size() < 200, "a message with the request in it");
  }
  return 0;
}
