// HttpClient: ranges of a file behind an address, several at once, asked for again where that helps.
#pragma once

#include <ballast/http.hpp>

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "net/http_answer.hpp"

namespace ballast::net {

// One range, and where its bytes go.
struct Fetch {
  WantedRange wanted;
  std::span<std::byte> out;  // as large as the range
  // The result.
  std::uint64_t received = 0;  // bytes of `out` that came; fewer than asked for only at the end of the file
  std::uint64_t first = 0;     // where they lie in the file
};

// What all answers about one file must agree in; what the first answer says is kept.
struct Remote {
  std::string url;        // as it was given
  std::string final_url;  // after redirects; empty at first
  std::optional<std::uint64_t> total;
  std::string etag;         // empty if there is none, or a weak one
  bool is_known = false;    // there has been an answer
  bool is_missing = false;  // 404
};

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Fetches all of them, and checks every answer against `remote`, which it completes. Throws Errc::io, changed,
  // not_found, unsafe.
  void fetch(Remote& remote, std::span<Fetch> fetches);

 private:
  class Session;
  std::unique_ptr<Session> take_session();
  void give_back(std::unique_ptr<Session> session);

  HttpOptions options_;
  std::mutex mutex_;
  pid_t process_ = 0;
  std::vector<std::unique_ptr<Session>> idle_;  // with their connections, for the next call
};

}  // namespace ballast::net
