#include "http.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

constexpr std::size_t kMostHeadBytes = std::size_t{16} << 10;
constexpr std::chrono::seconds kHeadTime{5};
constexpr int kWriteMilliseconds = 30'000;
constexpr unsigned kThreads = 12;

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 303: return "See Other";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    default: return "Internal Server Error";
  }
}

bool is_ready(int socket, short events, int milliseconds) {
  pollfd waiting{socket, events, 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

// All up to the empty line; empty if it does not come.
std::string read_head(int socket) {
  std::string head;
  char buffer[4096];
  const auto end = std::chrono::steady_clock::now() + kHeadTime;
  while (head.size() < kMostHeadBytes && std::chrono::steady_clock::now() < end) {
    if (!is_ready(socket, POLLIN, 200)) continue;
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return "";
    if (got > 0) head.append(buffer, static_cast<std::size_t>(got));
    if (const std::size_t at = head.find("\r\n\r\n"); at != head.npos) return head.substr(0, at + 2);
  }
  return "";
}

}  // namespace

bool HttpReply::is_wanted() {
  if (stops_ || is_gone_) return false;
  char byte;
  const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) is_gone_ = true;
  return !is_gone_;
}

void HttpReply::write(std::string_view text) {
  while (!text.empty() && !is_gone_) {
    if (!is_ready(socket_, POLLOUT, kWriteMilliseconds)) {
      is_gone_ = true;
      return;
    }
    const ssize_t written = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) is_gone_ = true;
  }
}

std::string HttpReply::head(int status, std::string_view type, const std::vector<HttpHeader>& more) const {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: {}\r\n", status, reason(status), type);
  for (const auto* headers : {&always_, &more}) {
    for (const auto& [name, value] : *headers) head += fmt::format("{}: {}\r\n", name, value);
  }
  return head;
}

void HttpReply::send(int status, std::string_view type, std::string_view body, const std::vector<HttpHeader>& more) {
  has_begun_ = true;
  write(head(status, type, more) + fmt::format("Content-Length: {}\r\n\r\n", body.size()));
  write(body);
}

void HttpReply::stream(std::string_view type, std::string_view part) {
  if (!has_begun_) write(head(200, type, {}) + "\r\n");
  has_begun_ = true;
  write(part);
}

HttpServer::HttpServer(std::uint16_t port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) throw Error(Errc::io, "the system gives no socket").of_system(errno);
  const int on = 1;
  static_cast<void>(::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int problem = errno;
    ::close(listener_);
    throw Error(Errc::io, fmt::format("cannot listen on port {}: {}", port, std::strerror(problem)))
        .of_system(problem)
        .hint("another port may be free; --port 0 takes any");
  }
  port_ = ntohs(address.sin_port);
}

HttpServer::~HttpServer() { ::close(listener_); }

void HttpServer::answer(int socket, const Handle& handle) {
  HttpReply reply(socket, stops_, always_);
  const std::string head = read_head(socket);
  if (head.empty()) return;
  HttpRequest request;
  try {
    request = parse_request(head);
  } catch (const Error& error) {
    return reply.send(error.code() == Errc::unsupported ? 405 : 400, "text/plain", error.message());
  }
  handle(request, reply);
}

void HttpServer::work(const Handle& handle) {
  while (!stops_) {
    if (!is_ready(listener_, POLLIN, 100)) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;  // another thread was faster
    answer(socket, handle);
    ::shutdown(socket, SHUT_WR);
    ::close(socket);
  }
}

void HttpServer::serve(const Handle& handle, const std::function<bool()>& keep_going) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back([&] { work(handle); });
  while (keep_going()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  stops_ = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ballast::cli
