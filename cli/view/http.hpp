// A small HTTP server for one browser on this machine: GET, one request a connection, nothing kept alive.
//
// It listens on 127.0.0.1 and nowhere else. A few threads answer; a handler may take its time, and asks is_wanted()
// now and then. What it is told is bounded: a head of 16 KiB, in five seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::cli {

struct HttpRequest {
  std::string path;                                         // "/api/values/0/17", decoded
  std::map<std::string, std::string, std::less<>> query;    // decoded; of a word that is there twice, the first
  std::map<std::string, std::string, std::less<>> headers;  // by lower-case names; "host", "cookie"
  std::vector<std::string_view> parts() const;              // of the path: "api", "values", "0", "17"
};

// The head of a request. Errc::malformed if it is none, or not a GET.
HttpRequest parse_request(std::string_view head);

struct HttpHeader {
  std::string_view name;
  std::string value;
};

class HttpReply {
 public:
  HttpReply(int socket, const std::atomic<bool>& stops, const std::vector<HttpHeader>& always)
      : socket_(socket), stops_(stops), always_(always) {}

  // The whole answer.
  void send(int status, std::string_view type, std::string_view body, const std::vector<HttpHeader>& more = {});

  // A part of an answer whose end is the end of the connection. The first part sends the head.
  void stream(std::string_view type, std::string_view part);
  bool has_begun() const noexcept { return has_begun_; }

  // False if the browser has gone, or if the server stops.
  bool is_wanted();

 private:
  void write(std::string_view text);
  std::string head(int status, std::string_view type, const std::vector<HttpHeader>& more) const;

  int socket_;
  const std::atomic<bool>& stops_;
  const std::vector<HttpHeader>& always_;
  bool has_begun_ = false, is_gone_ = false;
};

class HttpServer {
 public:
  using Handle = std::function<void(const HttpRequest&, HttpReply&)>;

  // Port 0 is any that is free. Errc::io if the port is taken.
  explicit HttpServer(std::uint16_t port);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  std::uint16_t port() const noexcept { return port_; }
  void always_send(std::vector<HttpHeader> headers) { always_ = std::move(headers); }

  // Answers until keep_going() is false, which is asked ten times a second by the calling thread.
  void serve(const Handle& handle, const std::function<bool()>& keep_going);

 private:
  void work(const Handle& handle);
  void answer(int socket, const Handle& handle);

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stops_ = false;
  std::vector<HttpHeader> always_;
};

}  // namespace ballast::cli
