#include "net/http_source.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "net/addresses.hpp"

namespace ballast::net {
namespace {

constexpr std::uint64_t kBeginning = 64 << 10;     // most headers fit
constexpr std::uint64_t kGgufBeginning = 4 << 20;  // most vocabularies fit
constexpr std::uint64_t kZipEnd = 65'557;          // the end record with the longest comment
constexpr std::uint64_t kRoundTrip = 256 << 10;    // what arrives while one more request would be under way
constexpr std::uint64_t kLargestPiece = 8 << 20;   // several connections share what is larger
constexpr std::uint64_t kMostKept = 64 << 20;      // bytes of windows
constexpr unsigned kWasteShare = 20;               // gaps are read through up to a twentieth of the bytes

// A part of the file that is kept in memory.
struct Window {
  std::uint64_t first;
  std::vector<std::byte> bytes;
};

// Ranges that one request brings.
struct Piece {
  std::uint64_t first = 0, end = 0, wasted = 0;
  std::vector<ReadRange> ranges;
};

class HttpSource final : public Source {
 public:
  HttpSource(std::shared_ptr<HttpClient> client, const std::string& url)
      : client_(std::move(client)), name_(without_secrets(url)) {
    remote_.url = url;
    read_ends();
  }

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return *remote_.total; }
  std::uint64_t bytes_per_round_trip() const override { return kRoundTrip; }
  std::optional<FileLocation> location(std::uint64_t offset) const override { return FileLocation{name_, offset}; }
  std::string identity() const override {
    return remote_.etag.empty() ? std::string() : fmt::format("{} {} {}", name_, remote_.etag, *remote_.total);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const ReadRange range{offset, out};
    read_many({&range, 1});
  }

  void read_many(std::span<const ReadRange> ranges) const override {
    std::vector<ReadRange> missing;
    for (const ReadRange& range : ranges) {
      if (!is_inside(range.offset, range.out.size(), size_bytes()))
        throw Error(Errc::malformed, "ends early").in(name_).at_byte(size_bytes());
      const ReadRange rest = take_kept(range);
      if (!rest.out.empty()) missing.push_back(rest);
    }
    if (missing.empty()) return;
    if (missing.size() == 1 && missing[0].out.size() < kBeginning) return read_ahead(missing[0]);
    fetch_pieces(pieces_of(missing));
  }

 private:
  void read_ends() {
    const std::string_view path = std::string_view(name_);
    std::vector<std::byte> begin(path.ends_with(".gguf") ? kGgufBeginning : kBeginning), end;
    std::vector<Fetch> fetches{{{0, begin.size(), false}, begin}};
    // A zip has its directory at the end; and what is no zip must not have one there, so that it has one meaning.
    if (!path.ends_with(".json")) {
      end.resize(kZipEnd);
      fetches.push_back({{0, end.size(), true}, end});
    }
    client_->fetch(remote_, fetches);
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      std::vector<std::byte>& bytes = i == 0 ? begin : end;
      bytes.resize(static_cast<std::size_t>(fetches[i].received));
      if (!bytes.empty()) keep({fetches[i].first, std::move(bytes)});
    }
  }

  // Copies what is kept of the range, and returns what is not: the windows may hold its beginning, its end, or all.
  ReadRange take_kept(ReadRange range) const {
    const std::lock_guard lock(mutex_);
    for (auto window = windows_.begin(); window != windows_.end() && !range.out.empty(); ++window) {
      const std::uint64_t end = range.offset + range.out.size(), kept_end = window->first + window->bytes.size();
      const std::uint64_t first = std::max(range.offset, window->first), last = std::min(end, kept_end);
      const bool is_at_an_end = first < last && (first == range.offset || last == end);
      if (!is_at_an_end) continue;
      const auto part = range.out.subspan(first - range.offset, last - first);
      std::memcpy(part.data(), window->bytes.data() + (first - window->first), part.size());
      range = first == range.offset ? ReadRange{last, range.out.subspan(part.size())}
                                    : ReadRange{range.offset, range.out.first(range.out.size() - part.size())};
    }
    return range;
  }

  void keep(Window window) const {
    const std::lock_guard lock(mutex_);
    kept_ += window.bytes.size();
    windows_.push_front(std::move(window));
    while (kept_ > kMostKept && windows_.size() > 1) {
      kept_ -= windows_.back().bytes.size();
      windows_.pop_back();
    }
  }

  // A small read, such as one of a reader that walks through a header: what follows is likely to be wanted, too.
  void read_ahead(const ReadRange& range) const {
    const std::uint64_t size =
        std::min(std::max<std::uint64_t>(range.out.size(), kBeginning), size_bytes() - range.offset);
    Window window{range.offset, std::vector<std::byte>(static_cast<std::size_t>(size))};
    Fetch fetch{{range.offset, size, false}, window.bytes};
    fetch_all({&fetch, 1});
    std::memcpy(range.out.data(), window.bytes.data(), range.out.size());
    keep(std::move(window));
  }

  // Neighbours share a request while the bytes between them are few.
  static std::vector<Piece> pieces_of(std::vector<ReadRange>& ranges) {
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    std::vector<Piece> pieces;
    for (const ReadRange& range : ranges) {
      const std::uint64_t end = range.offset + range.out.size();
      if (!pieces.empty()) {
        Piece& last = pieces.back();
        const std::uint64_t gap = range.offset > last.end ? range.offset - last.end : 0;
        const std::uint64_t whole = std::max(end, last.end) - last.first;
        if ((last.wasted + gap) * kWasteShare <= whole && whole <= kLargestPiece) {
          last.wasted += gap;
          last.end = std::max(end, last.end);
          last.ranges.push_back(range);
          continue;
        }
      }
      pieces.push_back({range.offset, end, 0, {range}});
    }
    return pieces;
  }

  // A piece of one range goes to where it is wanted, in parts that several connections bring; others are taken apart.
  void fetch_pieces(const std::vector<Piece>& pieces) const {
    std::vector<Fetch> fetches;
    std::vector<std::pair<const Piece*, std::vector<std::byte>>> joined;
    joined.reserve(pieces.size());
    for (const Piece& piece : pieces) {
      if (piece.ranges.size() == 1) {
        const auto [offset, out] = piece.ranges[0];
        for (std::uint64_t at = 0; at < out.size(); at += kLargestPiece) {
          const std::uint64_t size = std::min<std::uint64_t>(kLargestPiece, out.size() - at);
          fetches.push_back({{offset + at, size, false}, out.subspan(at, size)});
        }
      } else {
        auto& bytes = joined.emplace_back(&piece, static_cast<std::size_t>(piece.end - piece.first)).second;
        fetches.push_back({{piece.first, bytes.size(), false}, bytes});
      }
    }
    fetch_all(fetches);
    for (const auto& [piece, bytes] : joined) {
      for (const ReadRange& range : piece->ranges)
        std::memcpy(range.out.data(), bytes.data() + (range.offset - piece->first), range.out.size());
    }
  }

  // Each call has a copy of what is known about the file, which does not change but for the way to it.
  void fetch_all(std::span<Fetch> fetches) const {
    Remote remote;
    {
      const std::lock_guard lock(mutex_);
      remote = remote_;
    }
    client_->fetch(remote, fetches);
    for (const Fetch& fetch : fetches) {
      if (fetch.received != fetch.out.size()) throw Error(Errc::changed, "the file is shorter now").in(name_);
    }
    const std::lock_guard lock(mutex_);
    remote_.final_url = std::move(remote.final_url);
  }

  std::shared_ptr<HttpClient> client_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable Remote remote_;
  mutable std::list<Window> windows_;  // the latest comes first
  mutable std::uint64_t kept_ = 0;
};

}  // namespace

SourcePtr http_source(std::shared_ptr<HttpClient> client, const std::string& url) {
  return std::make_shared<HttpSource>(std::move(client), url);
}

}  // namespace ballast::net
