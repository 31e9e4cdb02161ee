#include "net/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "core/wanted.hpp"

namespace ballast::net {
namespace {

constexpr unsigned kMostRedirects = 5, kMostBroken = 1000;
constexpr long kBufferBytes = 512 << 10;
constexpr std::uint64_t kBulkBytes = 8 << 20;
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

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  curl().easy_setopt(easy, option, value);
}

[[noreturn]] void fail(Transfer& transfer, CURLcode code) {
  const int status = transfer.headers.status;
  const AccessPtr& access = transfer.remote->access;
  if (status >= 300 && access && access->explain) {
    if (auto error = access->explain(transfer.headers)) throw error->in(transfer.where());
  }
  if (status == 404 || status == 410)
    throw Error(Errc::not_found, "there is no such file on the server").in(transfer.where());
  if (status == 401 || status == 403)
    throw Error(Errc::io, fmt::format("the server does not allow it (status {})", status)).in(transfer.where());
  if (status >= 300 && status < 400) throw Error(Errc::unsafe, "the server redirects to nowhere").in(transfer.where());
  if (status >= 400 || (code == CURLE_OK && status != 0))
    throw Error(Errc::io, fmt::format("the server answers with status {}", status)).in(transfer.where());
  const std::string why = transfer.message[0] != '\0' ? transfer.message.data() : curl().easy_strerror(code);
  throw Error(Errc::io, "cannot be read: " + why).in(transfer.where());
}

}  // namespace

void require_wanted(const HttpOptions& options) {
  const bool goes_on = !options.keep_going || options.keep_going();
  if (!goes_on || !is_wanted()) throw Error(Errc::cancelled, "cancelled");
}

Session::Session(const HttpOptions& options)
    : options_(options), multi_(curl().multi_init()), certificates_(certificates(options)) {
  if (multi_ == nullptr) throw std::bad_alloc();
}

Session::~Session() {
  for (CURL* easy : idle_) curl().easy_cleanup(easy);
  curl().multi_cleanup(multi_);
}

void Session::run(Remote& remote, std::span<Fetch> fetches) {
  std::deque<Transfer> transfers;
  std::uint64_t bytes = 0;
  for (Fetch& fetch : fetches) {
    bytes += fetch.wanted.size;
    Transfer& transfer = transfers.emplace_back();
    transfer.fetch = &fetch;
    transfer.remote = &remote;
    transfer.url = remote.final_url.empty() ? remote.url : remote.final_url;
  }
  is_bulk_ = bytes >= kBulkBytes;
  run_all(transfers);
}

void Session::run(Remote& remote, Page& page) {
  std::deque<Transfer> transfers(1);
  transfers[0].page = &page;
  transfers[0].remote = &remote;
  transfers[0].url = remote.url;
  is_bulk_ = false;
  run_all(transfers);
  page.headers = std::move(transfers[0].headers);
  remote.final_url = std::move(transfers[0].url);
}

void Session::run_all(std::deque<Transfer>& transfers) {
  broken_ = 0;
  for (Transfer& transfer : transfers) waiting_.push_back(&transfer);
  try {
    while (!waiting_.empty() || !active_.empty()) step();
  } catch (...) {
    for (Transfer* transfer : active_) release(*transfer);
    active_.clear();
    waiting_.clear();
    throw;
  }
}

void Session::step() {
  ask_whether_to_go_on();
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
    curl().multi_poll(multi_, nullptr, 0, 20, nullptr);
}

void Session::ask_whether_to_go_on() {
  constexpr auto kBetweenQuestions = std::chrono::milliseconds(20);
  if (Clock::now() < next_question_) return;
  next_question_ = Clock::now() + kBetweenQuestions;
  require_wanted(options_);
}

void Session::start_those_that_may() {
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

void Session::start(Transfer& transfer) {
  const Url url = resolve("", transfer.url);
  const Access* access = transfer.remote->access.get();
  const bool may_be_plain = options_.allow_plain || is_loopback(url) || (access != nullptr && access->allows_plain);
  if (url.scheme != "https" && !(url.scheme == "http" && may_be_plain)) {
    throw Error(Errc::unsafe, fmt::format("{} is not secure", quote(url.scheme + "://" + url.host)))
        .hint("use https://, or ask for plain HTTP with " + Advice::mention(Remedy::plain_http));
  }
  transfer.begin();
  if (idle_.empty()) idle_.push_back(curl().easy_init());
  CURL* easy = idle_.back();
  if (easy == nullptr) throw std::bad_alloc();
  idle_.pop_back();
  transfer.easy = easy;
  transfer.set_callbacks(easy);
  set(easy, CURLOPT_URL, transfer.url.c_str());
  if (transfer.fetch != nullptr) set(easy, CURLOPT_RANGE, transfer.missing().text().c_str());
  if (is_bulk_) set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_USERAGENT, "ballast");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_milliseconds));
  set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.idle_seconds));
  set(easy, CURLOPT_TIMEOUT, static_cast<long>(options_.request_seconds));
  if (!certificates_.empty()) set(easy, CURLOPT_CAINFO, certificates_.c_str());
  set_access(transfer, url);
  curl().multi_add_handle(multi_, easy);
  active_.push_back(&transfer);
}

// What says who asks stays with the host that it is for.
void Session::set_access(Transfer& transfer, const Url& url) {
  transfer.header_lines = curl().slist_append(nullptr, "Accept-Encoding: identity");
  const Access* access = transfer.remote->access.get();
  const bool is_first_host = url.origin == resolve("", transfer.remote->url).origin;
  if (access != nullptr && is_first_host) {
    for (const std::string& line : access->headers)
      transfer.header_lines = curl().slist_append(transfer.header_lines, line.c_str());
    if (access->netrc) set(transfer.easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    if (access->aws) {
      set(transfer.easy, CURLOPT_AWS_SIGV4, ("aws:amz:" + access->aws->region + ":s3").c_str());
      set(transfer.easy, CURLOPT_USERNAME, access->aws->key_id.c_str());
      set(transfer.easy, CURLOPT_PASSWORD, access->aws->secret.c_str());
    }
  }
  set(transfer.easy, CURLOPT_HTTPHEADER, transfer.header_lines);
}

void Session::release(Transfer& transfer) {
  curl().multi_remove_handle(multi_, transfer.easy);
  curl().easy_reset(transfer.easy);
  curl().slist_free_all(std::exchange(transfer.header_lines, nullptr));
  idle_.push_back(std::exchange(transfer.easy, nullptr));
}

void Session::finish(CURL* easy, CURLcode code) {
  void* context = nullptr;
  curl().easy_getinfo(easy, CURLINFO_PRIVATE, &context);
  auto& transfer = *static_cast<Transfer*>(context);
  char* address = nullptr;
  curl().easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address);
  if (address != nullptr && *address != '\0') transfer.came_from(reach_of(std::string(address)));
  release(transfer);
  std::erase(active_, &transfer);
  settle(transfer, code);
}

unsigned Session::attempts(const Transfer& transfer) const {
  return transfer.remote->attempts != 0 ? transfer.remote->attempts : options_.attempts;
}

// What comes after an answer, or after none.
void Session::settle(Transfer& transfer, CURLcode code) {
  if (transfer.is_forbidden)
    throw Error(Errc::unsafe, "the server redirects into a private network").in(transfer.where());
  if (transfer.error) throw std::exchange(transfer.error, std::nullopt)->in(transfer.where());
  const int status = transfer.headers.status;
  if (transfer.is_whole()) return void(transfer.remote->final_url = transfer.url);
  if (status >= 300 && status < 400) return redirect(transfer);
  if (has_page(transfer, code)) return;
  if (transfer.fetch != nullptr && status == 416) return take_unsatisfied(transfer);
  // A whole file of no bytes has no body that would be looked at.
  const bool is_empty = transfer.fetch != nullptr && status == 200 && code == CURLE_OK && !transfer.is_body;
  if (is_empty) return check_same(*transfer.remote, transfer.headers, std::uint64_t{0});
  const bool is_cut_off = transfer.fetch != nullptr && transfer.is_body;
  const bool is_refusal = status >= 300;
  const bool may_help = is_refusal ? is_worth_repeating(status) : is_transient(code) || is_cut_off;
  const bool has_expired = (status == 401 || status == 403) && transfer.url != transfer.remote->url;
  if (has_expired && !std::exchange(transfer.was_refused, true)) {
    transfer.url = transfer.remote->url;  // a signed address that is no longer valid
    transfer.redirects = 0;
    waiting_.push_back(&transfer);
    return;
  }
  if (may_help && transfer.attempt + 1 < attempts(transfer)) return repeat(transfer);
  fail(transfer, code);
}

// Whether a page came to its end; one that says "later" is asked for again as long as that may help.
bool Session::has_page(Transfer& transfer, CURLcode code) {
  const bool is_last_attempt = transfer.attempt + 1 >= attempts(transfer);
  return transfer.page != nullptr && code == CURLE_OK &&
         (is_last_attempt || !is_worth_repeating(transfer.headers.status));
}

void Session::redirect(Transfer& transfer) {
  const std::string_view location = transfer.headers.get("location");
  const auto refuse = [&](std::string_view why) { throw Error(Errc::unsafe, std::string(why)).in(transfer.where()); };
  if (location.empty()) fail(transfer, CURLE_OK);
  if (++transfer.redirects > kMostRedirects) refuse("the server redirects again and again");
  const Url to = resolve(transfer.url, std::string(location));
  if (to.scheme != "https" && to.scheme != "http") refuse("the server redirects to " + quote(to.scheme + ":"));
  if (to.scheme == "http" && resolve("", transfer.url).scheme == "https")
    refuse("the server redirects from https to http");
  transfer.url = to.whole;
  waiting_.push_back(&transfer);
}

// A range behind the end: an empty file, or one that is shorter than it was.
void Session::take_unsatisfied(Transfer& transfer) {
  const auto total = parse_unsatisfied_range(transfer.headers.get("content-range"));
  check_same(*transfer.remote, transfer.headers, total);
  if (total && *total == 0) return;
  throw changed("it is shorter now").in(transfer.where());
}

void Session::repeat(Transfer& transfer) {
  const bool had_progress = transfer.fetch != nullptr && transfer.is_body && transfer.fetch->received != 0;
  const unsigned wait = milliseconds_to_wait(transfer.headers, transfer.attempt, random_share());
  transfer.attempt = had_progress ? transfer.attempt : transfer.attempt + 1;
  transfer.not_before = Clock::now() + std::chrono::milliseconds(wait);
  if (had_progress) ++broken_;
  if (broken_ > kMostBroken) throw Error(Errc::io, "the connection breaks again and again").in(transfer.where());
  waiting_.push_back(&transfer);
}

}  // namespace ballast::net
