#include "net/transfer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace ballast::net {
namespace {

constexpr std::size_t kMostHeaderBytes = 64 << 10, kMostPageBytes = 64 << 10;
constexpr std::uint64_t kMostSkipped = 64 << 20;

void refuse_encodings(const Headers& headers) {
  const std::string_view encoding = headers.get("content-encoding");
  if (!encoding.empty() && encoding != "identity") throw Error(Errc::io, "the server compresses the file");
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
  refuse_encodings(transfer.headers);
  check_same(*transfer.remote, transfer.headers, parse_number(transfer.headers.get("content-length")));
  transfer.remote->ignores_ranges = true;
  const std::uint64_t total = *transfer.remote->total;
  const std::uint64_t size = std::min(wanted.size, total);
  const std::uint64_t first = wanted.is_suffix ? total - size : wanted.offset;
  if (first > kMostSkipped && !fetch.sink) {
    throw Error(Errc::unsupported, "the server does not send ranges of files").hint("download the file first");
  }
  if (first > total) throw changed("it is shorter now");
  if (fetch.received == 0) fetch.first = first;
  transfer.skip = first;
  transfer.expected = std::min(wanted.size, total - first);
}

std::size_t take_page(Transfer& transfer, std::span<const char> piece) {
  if (!std::exchange(transfer.is_body, true)) refuse_encodings(transfer.headers);
  if (piece.size() > transfer.page->most_bytes - transfer.page->body.size())
    throw Error(Errc::limit, "the server's answer is too long");
  transfer.page->body.append(piece.data(), piece.size());
  return piece.size();
}

// Returns how much of a piece of the body was taken; less than all of it stops the transfer.
std::size_t take_piece(Transfer& transfer, std::span<const char> piece) {
  if (transfer.page != nullptr) return take_page(transfer, piece);
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
  if (fetch.sink)
    fetch.sink(std::as_bytes(rest.first(taken)));
  else if (taken != 0)
    std::memcpy(fetch.out.data() + fetch.received, rest.data(), taken);
  fetch.received += taken;
  transfer.expected -= taken;
  if (taken != 0 && fetch.took) fetch.took(taken);
  return skipped + taken;  // of a whole file, what is behind the range is not wanted
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

std::size_t on_header(char* data, std::size_t, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  return guarded(transfer, [&] {
    transfer.header_bytes += size;
    if (transfer.header_bytes > kMostHeaderBytes) throw Error(Errc::io, "the server's headers do not end");
    transfer.headers.add_line({data, size});
    return size;
  });
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  return guarded(transfer, [&] { return take_piece(transfer, {data, size}); });
}

curl_socket_t on_socket(void* context, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.came_from(reach_of(address->addr));
  if (transfer.is_forbidden) return CURL_SOCKET_BAD;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

void Transfer::begin() {
  headers = {};
  header_bytes = page_bytes = 0;
  is_body = false;
  skip = expected = 0;
  error.reset();
  message[0] = '\0';
  if (page != nullptr) page->body.clear();
}

WantedRange Transfer::missing() const {
  if (fetch->received == 0) return fetch->wanted;
  return {fetch->first + fetch->received, fetch->wanted.size - fetch->received, false};
}

void Transfer::set_callbacks(CURL* handle) {
  auto* context = static_cast<void*>(this);
  curl().easy_setopt(handle, CURLOPT_PRIVATE, context);
  curl().easy_setopt(handle, CURLOPT_HEADERFUNCTION, &on_header);
  curl().easy_setopt(handle, CURLOPT_HEADERDATA, context);
  curl().easy_setopt(handle, CURLOPT_WRITEFUNCTION, &on_body);
  curl().easy_setopt(handle, CURLOPT_WRITEDATA, context);
  curl().easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, &on_socket);
  curl().easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context);
  curl().easy_setopt(handle, CURLOPT_ERRORBUFFER, message.data());
}

void Transfer::came_from(Reach reach) {
  if (redirects == 0) return void(first_reach = reach);
  // Clouds tell secrets on link-local addresses, so nobody is sent there.
  const bool is_link_local = reach == Reach::link_local && first_reach != Reach::link_local;
  if (is_link_local || (first_reach == Reach::everywhere && reach != Reach::everywhere)) is_forbidden = true;
}

Error changed(std::string_view what) {
  return Error(Errc::changed, fmt::format("the file changed on the server: {}", what)).hint("open it again");
}

void check_same(Remote& remote, const Headers& headers, std::optional<std::uint64_t> total) {
  const std::string etag(strong_etag(headers));
  if (total && remote.total && *total != *remote.total)
    throw changed(fmt::format("it had {} bytes, and has {} now", *remote.total, *total));
  if (remote.is_known) {
    if (!remote.etag.empty() && etag != remote.etag) throw changed("it has another ETag");
    const auto differs = [](std::string_view a, std::string_view b) { return !a.empty() && !b.empty() && a != b; };
    if (remote.etag.empty() &&
        (differs(remote.weak_etag, headers.get("etag")) || differs(remote.last_modified, headers.get("last-modified"))))
      throw changed("it has another ETag or time");
    return;
  }
  if (!total && !remote.total) throw Error(Errc::io, "the server does not say how large the file is");
  if (total) remote.total = total;
  remote.etag = etag;
  remote.weak_etag = headers.get("etag");
  remote.last_modified = headers.get("last-modified");
  remote.is_known = true;
}

}  // namespace ballast::net
