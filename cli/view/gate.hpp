// Who may ask: the browser that was given the address, and no other page in it.
//
// A page of another site can send requests to 127.0.0.1, and a name of its own can be made to mean 127.0.0.1 (DNS
// rebinding). So a request must name this server as its host, must not come from another origin, and must have the
// cookie that only the address with the token gives.
#pragma once

#include <cstdint>
#include <string>

#include "http.hpp"

namespace ballast::cli {

class Gate {
 public:
  explicit Gate(std::uint16_t port);

  enum class Verdict : std::uint8_t {
    enter,    // the address with the token: give the cookie, and lead on to the page
    known,    // the browser has the cookie
    foreign,  // of another host or origin
    unknown,  // without the token and without the cookie
  };
  Verdict judge(const HttpRequest& request) const;

  std::string address() const;     // with the token
  std::string set_cookie() const;  // the value of the header

 private:
  bool has_cookie(const HttpRequest& request) const;

  std::uint16_t port_;
  std::string token_, cookie_;
};

}  // namespace ballast::cli
