#include "net/http_client.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "net/addresses.hpp"
#include "net/curl_api.hpp"

namespace ballast::net {
namespace {

constexpr std::size_t kMostHeaderBytes = 64 << 10, kMostPageBytes = 64 << 10;
constexpr unsigned kMostRedirects = 5;
constexpr long kBufferBytes = 512 << 10;
constexpr std::array kSystemCertificates = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"};

using Clock = std::chrono::steady_clock;

bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP2: return true;
    default: return false;
  }
}

double random_share() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(random);
}

std::string certificates(const HttpOptions& options) {
  if (!options.ca_file.empty()) return options.ca_file;
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  for (const char* path : kSystemCertificates) {
    if (access(path, R_OK) == 0) return path;
  }
  return {};
}

// One request of a Fetch: made anew for each redirect and each attempt.
struct Transfer {
  CURL* easy = nullptr;
  Fetch* fetch = nullptr;
  Remote* remote = nullptr;
  std::string url;
  unsigned redirects = 0, attempt = 0;
  bool was_public = false;    // the first host has a public address
  bool is_forbidden = false;  // a redirect led from there to a private one
  bool was_refused = false;   // 401 or 403 at the end of redirects: the way is walked once more
  Clock::time_point not_before{};

  Headers headers{};
  std::size_t header_bytes = 0, page_bytes = 0;
  bool is_body = false;                  // the headers have been checked
  std::uint64_t skip = 0, expected = 0;  // of the body: for an answer that brings the whole file
  std::optional<Error> error{};
  char message[CURL_ERROR_SIZE] = {};

  // What is still missing of the range: a broken transfer goes on where it stopped.
  WantedRange missing() const {
    if (fetch->received == 0) return fetch->wanted;
    return {fetch->first + fetch->received, fetch->out.size() - fetch->received, false};
  }

  void begin() {
    headers = {};
    header_bytes = page_bytes = 0;
    is_body = false;
    skip = expected = 0;
    error.reset();
    message[0] = '\0';
  }
};

Error changed(std::string_view what) {
  return Error(Errc::changed, fmt::format("the file changed on the server: {}", what)).hint("open it again");
}

// Compares an answer with those before, and keeps what the first one says.
void check_same(Remote& remote, const Headers& headers, std::optional<std::uint64_t> total) {
  const std::string etag(strong_etag(headers));
  if (remote.is_known) {
    if (total && remote.total && *total != *remote.total)
      throw changed(fmt::format("it had {} bytes, and has {} now", *remote.total, *total));
    if (!remote.etag.empty() && etag != remote.etag) throw changed("it has another ETag");
    return;
  }
  if (!total) throw Error(Errc::io, "the server does not say how large the file is");
  remote.total = total;
  remote.etag = etag;
  remote.is_known = true;
}

// The headers are there: what will the body be?
void check_headers(Transfer& transfer) {
  Fetch& fetch = *transfer.fetch;
  const WantedRange wanted = transfer.missing();
  if (transfer.headers.status == 206) {
    const Brought brought = check_partial(transfer.headers, wanted);
    check_same(*transfer.remote, transfer.headers, brought.total);
    if (fetch.received == 0) fetch.first = brought.range.offset;
    transfer.expected = brought.range.size;
    return;
  }
  // The server ignores ranges: the whole file comes. The beginning of it may be all that is wanted.
  const std::string_view encoding = transfer.headers.get("content-encoding");
  if (!encoding.empty() && encoding != "identity") throw Error(Errc::io, "the server compresses the file");
  check_same(*transfer.remote, transfer.headers, parse_number(transfer.headers.get("content-length")));
  const std::uint64_t total = *transfer.remote->total;
  const std::uint64_t size = std::min(wanted.size, total);
  const std::uint64_t first = wanted.is_suffix ? total - size : wanted.offset;
  constexpr std::uint64_t kMostSkipped = 64 << 20;
  if (first > kMostSkipped) {
    throw Error(Errc::unsupported, "the server does not send ranges of files").hint("download the file first");
  }
  if (first > total) throw changed("it is shorter now");
  if (fetch.received == 0) fetch.first = first;
  transfer.skip = first;
  transfer.expected = std::min(wanted.size, total - first);
}

// No exception may pass through libcurl: it is kept, and the transfer stops.
template <class Take>
std::size_t guarded(Transfer& transfer, const Take& take) {
  try {
    return take();
  } catch (const Error& error) {
    transfer.error = error;
  } catch (const std::exception& error) {
    transfer.error = Error(Errc::io, error.what());
  }
  return 0;
}

std::size_t take_header(char* data, std::size_t, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.header_bytes += size;
  if (transfer.header_bytes > kMostHeaderBytes) return 0;
  return guarded(transfer, [&] {
    transfer.headers.add_line({data, size});
    return size;
  });
}

// Returns how much of a piece of the body was taken; less than all of it stops the transfer.
std::size_t take_piece(Transfer& transfer, std::span<const char> piece) {
  const int status = transfer.headers.status;
  if (status != 206 && status != 200) {  // the page that comes with an error or a redirect; it may be endless
    transfer.page_bytes += piece.size();
    return transfer.page_bytes > kMostPageBytes ? 0 : piece.size();
  }
  if (!std::exchange(transfer.is_body, true)) check_headers(transfer);
  Fetch& fetch = *transfer.fetch;
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(transfer.skip, piece.size()));
  transfer.skip -= skipped;
  const std::span<const char> rest = piece.subspan(skipped);
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(transfer.expected, rest.size()));
  if (status == 206 && taken < rest.size()) throw Error(Errc::io, "the server sends more bytes than it said");
  std::memcpy(fetch.out.data() + fetch.received, rest.data(), taken);
  fetch.received += taken;
  transfer.expected -= taken;
  return skipped + taken;  // of a whole file, what is behind the range is not wanted
}

std::size_t take_body(char* data, std::size_t, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  return guarded(transfer, [&] { return take_piece(transfer, {data, size}); });
}

// A redirect from the open internet must not reach into a private network, whatever name it uses for it.
curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(context);
  const bool is_inside = is_private(address->addr);
  if (transfer.redirects == 0) transfer.was_public = !is_inside;
  if (transfer.redirects != 0 && transfer.was_public && is_inside) {
    transfer.is_forbidden = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

// A multi handle with its connections, for one call at a time.
class HttpClient::Session {
 public:
  explicit Session(const HttpOptions& options) : options_(options), multi_(curl().multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    certificates_ = certificates(options);
    headers_ = curl().slist_append(nullptr, "Accept-Encoding: identity");
  }
  ~Session() {
    for (CURL* easy : idle_) curl().easy_cleanup(easy);
    curl().multi_cleanup(multi_);
    curl().slist_free_all(headers_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run(Remote& remote, std::span<Fetch> fetches) {
    broken_ = 0;
    std::deque<Transfer> all;
    for (Fetch& fetch : fetches) {
      Transfer& transfer = all.emplace_back();
      transfer.fetch = &fetch;
      transfer.remote = &remote;
      transfer.url = remote.final_url.empty() ? remote.url : remote.final_url;
      waiting_.push_back(&transfer);
    }
    try {
      while (!waiting_.empty() || !active_.empty()) step();
    } catch (...) {
      for (Transfer* transfer : active_) release(*transfer);
      active_.clear();
      waiting_.clear();
      throw;
    }
  }

 private:
  void step() {
    start_those_that_may();
    int running = 0;
    curl().multi_perform(multi_, &running);
    int left = 0;
    while (CURLMsg* message = curl().multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
    }
    if (active_.empty() && waiting_.empty()) return;
    const bool is_only_waiting = active_.empty();
    if (is_only_waiting)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    else
      curl().multi_poll(multi_, nullptr, 0, 100, nullptr);
  }

  void start_those_that_may() {
    for (std::size_t i = 0; i < waiting_.size() && active_.size() < std::max(options_.in_flight, 1u);) {
      if (waiting_[i]->not_before > Clock::now()) {
        ++i;
        continue;
      }
      Transfer* transfer = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      start(*transfer);
    }
  }

  template <class Value>
  static void set(CURL* easy, CURLoption option, Value value) {
    curl().easy_setopt(easy, option, value);
  }

  void start(Transfer& transfer) {
    const Url url = resolve("", transfer.url);
    const bool is_secure = url.scheme == "https";
    const bool may_be_plain = options_.allow_plain || is_loopback(url);
    if (!is_secure && !(url.scheme == "http" && may_be_plain)) {
      throw Error(Errc::unsafe, fmt::format("{} is not secure", quote(url.scheme + "://" + url.host)))
          .hint("use https://");
    }
    transfer.begin();
    if (idle_.empty()) idle_.push_back(curl().easy_init());
    CURL* easy = idle_.back();
    if (easy == nullptr) throw std::bad_alloc();
    idle_.pop_back();
    transfer.easy = easy;
    set(easy, CURLOPT_URL, transfer.url.c_str());
    set(easy, CURLOPT_RANGE, transfer.missing().text().c_str());
    set(easy, CURLOPT_PRIVATE, static_cast<void*>(&transfer));
    set(easy, CURLOPT_HTTPHEADER, headers_);
    set(easy, CURLOPT_USERAGENT, "ballast");
    set(easy, CURLOPT_HEADERFUNCTION, &take_header);
    set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_WRITEFUNCTION, &take_body);
    set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
    set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(&transfer));
    set(easy, CURLOPT_ERRORBUFFER, transfer.message);
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
    set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_milliseconds));
    set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.idle_seconds));
    if (!certificates_.empty()) set(easy, CURLOPT_CAINFO, certificates_.c_str());
    curl().multi_add_handle(multi_, easy);
    active_.push_back(&transfer);
  }

  void release(Transfer& transfer) {
    curl().multi_remove_handle(multi_, transfer.easy);
    curl().easy_reset(transfer.easy);
    idle_.push_back(transfer.easy);
    transfer.easy = nullptr;
  }

  void finish(CURL* easy, CURLcode code) {
    void* context = nullptr;
    curl().easy_getinfo(easy, CURLINFO_PRIVATE, &context);
    auto& transfer = *static_cast<Transfer*>(context);
    char* address = nullptr;
    curl().easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address);
    // A connection that was used before opens no socket, so the address is looked at here as well.
    const bool is_inside = address != nullptr && *address != '\0' && is_private(std::string(address));
    const bool is_known_address = address != nullptr && *address != '\0';
    release(transfer);
    std::erase(active_, &transfer);
    if (is_known_address && transfer.redirects == 0) transfer.was_public = !is_inside;
    if (is_known_address && transfer.redirects != 0 && transfer.was_public && is_inside) transfer.is_forbidden = true;
    settle(transfer, code);
  }

  // What comes after an answer, or after none.
  void settle(Transfer& transfer, CURLcode code) {
    if (transfer.is_forbidden) {
      throw Error(Errc::unsafe, "a public server redirects into a private network")
          .in(without_secrets(transfer.remote->url));
    }
    if (transfer.error) throw std::exchange(transfer.error, std::nullopt)->in(without_secrets(transfer.remote->url));
    const int status = transfer.headers.status;
    const bool is_whole = transfer.is_body && transfer.expected == 0;
    if (is_whole) return void(transfer.remote->final_url = transfer.url);
    if (status >= 300 && status < 400) return redirect(transfer);
    if (status == 416) return take_unsatisfied(transfer);
    const bool may_help =
        status == 0 || transfer.is_body ? is_transient(code) || transfer.is_body : is_worth_repeating(status);
    const bool has_expired = (status == 401 || status == 403) && transfer.url != transfer.remote->url;
    if (has_expired && !std::exchange(transfer.was_refused, true)) {
      transfer.url = transfer.remote->url;  // a signed address that is no longer valid
      transfer.redirects = 0;
      waiting_.push_back(&transfer);
      return;
    }
    if (may_help && transfer.attempt + 1 < options_.attempts) return repeat(transfer);
    fail(transfer, code);
  }

  void redirect(Transfer& transfer) {
    const std::string_view location = transfer.headers.get("location");
    const auto refuse = [&](std::string_view why) {
      throw Error(Errc::unsafe, std::string(why)).in(without_secrets(transfer.remote->url));
    };
    if (location.empty()) refuse("the server redirects to nowhere");
    if (++transfer.redirects > kMostRedirects) refuse("the server redirects again and again");
    const Url to = resolve(transfer.url, std::string(location));
    if (to.scheme != "https" && to.scheme != "http") refuse("the server redirects to " + quote(to.scheme + ":"));
    if (to.scheme == "http" && resolve("", transfer.url).scheme == "https")
      refuse("the server redirects from https to http");
    transfer.url = to.whole;
    waiting_.push_back(&transfer);
  }

  // A range behind the end: an empty file, or one that is shorter than it was.
  void take_unsatisfied(Transfer& transfer) {
    const auto total = parse_unsatisfied_range(transfer.headers.get("content-range"));
    check_same(*transfer.remote, transfer.headers, total);
    if (total && *total == 0) return;
    throw changed("it is shorter now").in(without_secrets(transfer.remote->url));
  }

  void repeat(Transfer& transfer) {
    const bool had_progress = transfer.is_body && transfer.fetch->received != 0;
    const unsigned wait = milliseconds_to_wait(transfer.headers, transfer.attempt, random_share());
    transfer.attempt = had_progress ? transfer.attempt : transfer.attempt + 1;
    transfer.not_before = Clock::now() + std::chrono::milliseconds(wait);
    if (had_progress) ++broken_;
    if (broken_ > kMostBroken)
      throw Error(Errc::io, "the connection breaks again and again").in(without_secrets(transfer.remote->url));
    waiting_.push_back(&transfer);
  }

  [[noreturn]] static void fail(Transfer& transfer, CURLcode code) {
    const int status = transfer.headers.status;
    const std::string where = without_secrets(transfer.remote->url);
    if (status == 404 || status == 410) throw Error(Errc::not_found, "there is no such file on the server").in(where);
    if (status == 401 || status == 403)
      throw Error(Errc::io, fmt::format("the server does not allow it (status {})", status)).in(where);
    if (status >= 400) throw Error(Errc::io, fmt::format("the server answers with status {}", status)).in(where);
    const std::string why = transfer.message[0] != '\0' ? transfer.message : curl().easy_strerror(code);
    throw Error(Errc::io, "cannot be read: " + why).in(where);
  }

  static constexpr unsigned kMostBroken = 1000;

  const HttpOptions& options_;
  CURLM* multi_;
  curl_slist* headers_ = nullptr;
  std::string certificates_;
  std::vector<CURL*> idle_;
  std::vector<Transfer*> active_;
  std::deque<Transfer*> waiting_;
  unsigned broken_ = 0;
};

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {}
HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Session> HttpClient::take_session() {
  const std::lock_guard lock(mutex_);
  // A child of fork shares the sockets of its parent: it must neither use nor close them.
  if (std::exchange(process_, getpid()) != getpid()) {
    for (auto& session : idle_) static_cast<void>(session.release());
    idle_.clear();
  }
  if (idle_.empty()) return std::make_unique<Session>(options_);
  auto session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void HttpClient::give_back(std::unique_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

void HttpClient::fetch(Remote& remote, std::span<Fetch> fetches) {
  auto session = take_session();
  session->run(remote, fetches);
  give_back(std::move(session));
}

}  // namespace ballast::net
