// HttpClient: ranges of files behind addresses, and small pages, asked for by several threads at once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/session.hpp"

namespace ballast::net {

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const HttpOptions& options() const { return options_; }

  // Fetches all of them, and checks every answer against `remote`, which it completes. Throws Errc::io, changed,
  // not_found, unsafe, cancelled.
  void fetch(Remote& remote, std::span<Fetch> fetches);

  // Throws if there is no answer. An answer that says no, such as one with status 404, is a page, too.
  Page get(Remote& remote, std::size_t most_bytes);

  // Whether the server has sent a whole file where a range of it was asked for.
  bool ignores_ranges(const std::string& name);

  // What the user wants to be sent with every request to an address that the user gave.
  const AccessPtr& access() const { return access_; }

  // The bytes that all sources of this client keep in memory: a source takes part of the budget, and gives it back.
  bool take_memory(std::uint64_t bytes);
  void give_memory(std::uint64_t bytes) { kept_bytes_ -= bytes; }

 private:
  template <class Work>
  void with_session(const Work& work);

  HttpOptions options_;
  AccessPtr access_;
  std::atomic<std::uint64_t> kept_bytes_ = 0;
  std::mutex mutex_;
  pid_t process_ = 0;
  std::set<std::string> without_ranges_;        // files, by the names of their remotes
  std::vector<std::unique_ptr<Session>> idle_;  // with their connections, for the next call
};

}  // namespace ballast::net
