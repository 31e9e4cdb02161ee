#include "net/addresses.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include <ballast/error.hpp>

#include "core/text.hpp"
#include "net/curl_api.hpp"

namespace ballast::net {
namespace {

struct Block {
  std::uint32_t first;
  unsigned bits;
};

Reach reach_of_v4(std::uint32_t address) {
  constexpr Block kLinkLocal{0xA9FE0000, 16};  // 169.254/16
  constexpr std::array kPrivate = {
      Block{0x00000000, 8},   // this network
      Block{0x0A000000, 8},   // 10/8
      Block{0x64400000, 10},  // 100.64/10, behind a carrier
      Block{0x7F000000, 8},   // this machine
      Block{0xAC100000, 12},  // 172.16/12
      Block{0xC0A80000, 16},  // 192.168/16
  };
  const auto is_in = [&](const Block& block) { return (address ^ block.first) >> (32 - block.bits) == 0; };
  if (is_in(kLinkLocal)) return Reach::link_local;
  return std::any_of(kPrivate.begin(), kPrivate.end(), is_in) ? Reach::private_network : Reach::everywhere;
}

Reach reach_of_v6(const in6_addr& address) {
  const std::uint8_t* bytes = address.s6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&address)) return Reach::link_local;
  const bool is_unique_local = (bytes[0] & 0xFE) == 0xFC;  // fc00::/7
  if (IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address) || is_unique_local)
    return Reach::private_network;
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return Reach::everywhere;
  std::uint32_t mapped = 0;
  std::memcpy(&mapped, bytes + 12, sizeof mapped);
  return reach_of_v4(ntohl(mapped));
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl().url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl().url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string result(text);
  curl().free(text);
  return result;
}

}  // namespace

Reach reach_of(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return reach_of_v4(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr));
  if (address.sa_family == AF_INET6) return reach_of_v6(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return Reach::private_network;
}

Reach reach_of(const std::string& numeric_address) {
  in_addr v4 = {};
  in6_addr v6 = {};
  if (inet_pton(AF_INET, numeric_address.c_str(), &v4) == 1) return reach_of_v4(ntohl(v4.s_addr));
  if (inet_pton(AF_INET6, numeric_address.c_str(), &v6) == 1) return reach_of_v6(v6);
  return Reach::private_network;
}

Url resolve(const std::string& base, const std::string& reference) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl().url());
  if (!url) throw std::bad_alloc();
  const bool is_good = (base.empty() || curl().url_set(url.get(), CURLUPART_URL, base.c_str(), 0) == CURLUE_OK) &&
                       curl().url_set(url.get(), CURLUPART_URL, reference.c_str(), CURLU_DISALLOW_USER) == CURLUE_OK;
  if (!is_good) {
    throw Error(Errc::invalid_argument, "this is no address that can be read: " + quote(without_secrets(reference)))
        .hint("https://host/path, without a user or a password in it");
  }
  Url result{
      part_of(url.get(), CURLUPART_URL), part_of(url.get(), CURLUPART_SCHEME), part_of(url.get(), CURLUPART_HOST), {}};
  result.origin = result.scheme + "://" + result.host + ":" + part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  return result;
}

bool is_loopback(const Url& url) {
  return url.host == "localhost" || url.host == "[::1]" || url.host == "127.0.0.1" || url.host.ends_with(".localhost");
}

std::string without_secrets(const std::string& url) {
  std::string shown = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = shown.find("://"), at = shown.find('@');
  if (scheme != std::string::npos && at != std::string::npos && at < shown.find('/', scheme + 3))
    shown.erase(scheme + 3, at - scheme - 2);
  return shown;
}

}  // namespace ballast::net
