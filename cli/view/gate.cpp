#include "gate.hpp"

#include <fmt/format.h>

#include "pack.hpp"

namespace ballast::cli {
namespace {

constexpr std::size_t kSecretBytes = 24;

std::string_view header(const HttpRequest& request, std::string_view name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

Gate::Gate(std::uint16_t port) : port_(port), token_(random_hex(kSecretBytes)), cookie_(random_hex(kSecretBytes)) {}

std::string Gate::address() const { return fmt::format("http://127.0.0.1:{}/?token={}", port_, token_); }

// Browsers do not tell ports apart in cookies, so the name does.
std::string Gate::set_cookie() const {
  return fmt::format("ballast-{}={}; Path=/; HttpOnly; SameSite=Strict", port_, cookie_);
}

bool Gate::has_cookie(const HttpRequest& request) const {
  const std::string name = fmt::format("ballast-{}=", port_);
  std::string_view cookies = header(request, "cookie");
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(name) && same_secret(one.substr(name.size()), cookie_)) return true;
  }
  return false;
}

Gate::Verdict Gate::judge(const HttpRequest& request) const {
  const std::string_view host = header(request, "host");
  if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_)) return Verdict::foreign;
  const std::string_view origin = header(request, "origin");
  if (!origin.empty() && origin != fmt::format("http://{}", host)) return Verdict::foreign;
  // What a browser says of where a request comes from; a user who follows the address comes from nowhere.
  const std::string_view site = header(request, "sec-fetch-site");
  const auto token = request.query.find("token");
  if (request.path == "/" && token != request.query.end())
    return same_secret(token->second, token_) ? Verdict::enter : Verdict::unknown;
  if (!site.empty() && site != "same-origin" && site != "none") return Verdict::foreign;
  return has_cookie(request) ? Verdict::known : Verdict::unknown;
}

}  // namespace ballast::cli
