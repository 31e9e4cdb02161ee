#include <algorithm>
#include <cctype>
#include <charconv>

#include <ballast/error.hpp>

#include "http.hpp"

namespace ballast::cli {
namespace {

std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  return taken;
}

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// A line ends with CR LF and with nothing else: what one program takes for the end of a line, another one does not.
void check_characters(std::string_view line) {
  const auto is_control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
  if (std::ranges::any_of(line, is_control)) throw Error(Errc::malformed, "a control character in the head");
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

void read_headers(std::string_view head, HttpRequest& request) {
  while (!head.empty()) {
    const std::string_view line = take_until(head, "\r\n");
    const std::size_t colon = line.find(':');
    if (line.empty()) return;
    check_characters(line);
    if (colon == line.npos || !is_name(line.substr(0, colon))) throw Error(Errc::malformed, "a header without a name");
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    // Two of one name would be read as one by somebody, and as the other by somebody else.
    if (!request.headers.emplace(name, trimmed(line.substr(colon + 1))).second && (name == "host" || name == "origin"))
      throw Error(Errc::malformed, "a header is there twice");
  }
}

}  // namespace

HttpRequest parse_request(std::string_view head) {
  HttpRequest request;
  std::string_view line = take_until(head, "\r\n");
  check_characters(line);
  const std::string_view method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (!line.starts_with("HTTP/1.") || !target.starts_with("/")) throw Error(Errc::malformed, "not a request");
  if (method != "GET") throw Error(Errc::unsupported, "only GET is answered");
  request.path = decoded(take_until(target, "?"), false);
  while (!target.empty()) {
    std::string_view word = take_until(target, "&");
    const std::string_view key = take_until(word, "=");
    request.query.emplace(decoded(key, true), decoded(word, true));
  }
  read_headers(head, request);
  return request;
}

std::vector<std::string_view> HttpRequest::parts() const {
  std::vector<std::string_view> parts;
  std::string_view rest = path;
  if (rest.starts_with("/")) rest.remove_prefix(1);
  while (!rest.empty()) parts.push_back(take_until(rest, "/"));
  return parts;
}

}  // namespace ballast::cli
