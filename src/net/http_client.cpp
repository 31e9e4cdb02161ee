#include "net/http_client.hpp"

#include <unistd.h>

#include <utility>

namespace ballast::net {
namespace {

AccessPtr access_of(const HttpOptions& options) {
  auto access = std::make_shared<Access>();
  access->headers = options.headers;
  access->netrc = options.netrc;
  return access;
}

}  // namespace

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)), access_(access_of(options_)) {}
HttpClient::~HttpClient() = default;

template <class Work>
void HttpClient::with_session(const Work& work) {
  std::unique_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    // A child of fork shares the sockets of its parent: it must neither use nor close them.
    if (std::exchange(process_, getpid()) != getpid()) {
      for (auto& parents : idle_) static_cast<void>(parents.release());
      idle_.clear();
    }
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!session) session = std::make_unique<Session>(options_);
  work(*session);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

void HttpClient::fetch(Remote& remote, std::span<Fetch> fetches) {
  with_session([&](Session& session) { session.run(remote, fetches); });
  if (!remote.ignores_ranges) return;
  const std::lock_guard lock(mutex_);
  without_ranges_.insert(remote.name);
}

bool HttpClient::ignores_ranges(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return without_ranges_.contains(name);
}

Page HttpClient::get(Remote& remote, std::size_t most_bytes) {
  Page page{most_bytes};
  with_session([&](Session& session) { session.run(remote, page); });
  return page;
}

bool HttpClient::take_memory(std::uint64_t bytes) {
  if (kept_bytes_.fetch_add(bytes) + bytes <= options_.keep_bytes) return true;
  kept_bytes_ -= bytes;
  return false;
}

}  // namespace ballast::net
