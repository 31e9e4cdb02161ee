// Addresses of hosts, and where redirects may lead.
#pragma once

#include <string>
#include <string_view>

struct sockaddr;

namespace ballast::net {

// From where an address can be reached.
enum class Reach {
  link_local,       // by neighbours only
  private_network,  // from this machine, or from its network
  everywhere,
};
Reach reach_of(const sockaddr& address);
Reach reach_of(const std::string& numeric_address);

struct Url {
  std::string whole, scheme, host;
  std::string origin;  // "https://host:443": what credentials are for
};

// `reference`, which may be relative, as seen from `base`; empty `base` for an address that stands for itself. Throws
// Errc::invalid_argument if it is no address, or names a user or a password.
Url resolve(const std::string& base, const std::string& reference);

bool is_loopback(const Url& url);

// An address for messages: without a query, which may be signed, and without a password.
std::string without_secrets(const std::string& url);

}  // namespace ballast::net
