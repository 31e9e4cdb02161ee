// Transfer: one request and its answer, as libcurl's callbacks see them. Everything that an answer says is checked
// here.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/error.hpp>

#include "net/addresses.hpp"
#include "net/curl_api.hpp"
#include "net/http_answer.hpp"

namespace ballast::net {

// One range, and where its bytes go.
struct Fetch {
  WantedRange wanted;
  std::span<std::byte> out;  // as large as the range
  // Or, instead of `out`, a function that takes the bytes as they come, in their order; it may throw Error. Then a
  // server that sends the whole file may do so, however far away the range begins.
  std::function<void(std::span<const std::byte>)> sink{};
  std::function<void(std::uint64_t)> took{};  // called with each part that comes; may throw Error
  // The result.
  std::uint64_t received = 0;  // bytes of `out` that came; fewer than asked for only at the end of the file
  std::uint64_t first = 0;     // where they lie in the file
};

// A small answer that is taken whole, whatever its status: a page of an API.
struct Page {
  std::size_t most_bytes = 0;
  // The result.
  Headers headers{};
  std::string body{};
};

// Who asks. All of it goes to the host and port of the first address only; a redirect to another one takes nothing
// along.
struct Access {
  struct AwsSigning {
    std::string region, key_id, secret;
  };

  std::vector<std::string> headers{};  // "Name: value"
  bool netrc = false;
  bool allows_plain = false;  // the user has named a server that speaks plain HTTP
  std::optional<AwsSigning> aws{};
  // A better error for an answer that is none of the usual ones; nothing if there is none.
  std::function<std::optional<Error>(const Headers&)> explain{};
};
using AccessPtr = std::shared_ptr<const Access>;

// What all answers about one file must agree in; what the first answer says is kept.
struct Remote {
  std::string url;   // as it was given
  std::string name;  // for messages
  AccessPtr access{};
  unsigned attempts = 0;    // if not those of the client
  std::string digest{};     // of the bytes, if somebody else has told it: more than an ETag
  std::string final_url{};  // after redirects; empty at first
  std::optional<std::uint64_t> total{};
  std::string etag{};                        // empty if there is none, or a weak one
  std::string weak_etag{}, last_modified{};  // of servers that say no more
  bool is_known = false;                     // there has been an answer
  bool ignores_ranges = false;               // the server sent the whole file instead
};

// Made anew for each redirect and each attempt, but for what it remembers of the way.
struct Transfer {
  CURL* easy = nullptr;
  curl_slist* header_lines = nullptr;
  Fetch* fetch = nullptr;  // either this
  Page* page = nullptr;    // or this
  Remote* remote = nullptr;
  std::string url{};
  unsigned redirects = 0, attempt = 0;
  Reach first_reach = Reach::private_network;  // of the first host
  bool is_forbidden = false;                   // a redirect led from there to where it must not lead
  bool was_refused = false;                    // 401 or 403 at the end of redirects: the way is walked once more
  std::chrono::steady_clock::time_point not_before{};

  Headers headers{};
  std::size_t header_bytes = 0, page_bytes = 0;
  bool is_body = false;                  // the headers have been checked
  std::uint64_t skip = 0, expected = 0;  // of the body: for an answer that brings the whole file
  std::optional<Error> error{};
  std::array<char, CURL_ERROR_SIZE> message{};

  void begin();

  // What is still missing of the range: a broken transfer goes on where it stopped.
  WantedRange missing() const;
  bool is_whole() const { return fetch != nullptr && is_body && expected == 0; }
  const std::string& where() const { return remote->name; }

  // The callbacks, with the transfer as their context.
  void set_callbacks(CURL* handle);

  // Where the answer came from: an address of a private network must not be reached by a redirect from a public one,
  // whatever name is used for it. Called before a connection is made, and after the answer, since a connection that was
  // used before opens no socket.
  void came_from(Reach reach);
};

// Throws Errc::changed if the answer does not agree with those before; the first one is kept.
void check_same(Remote& remote, const Headers& headers, std::optional<std::uint64_t> total);
Error changed(std::string_view what);

}  // namespace ballast::net
