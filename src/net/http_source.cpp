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
#include "core/read_counter.hpp"
#include "net/ahead.hpp"

namespace ballast::net {
namespace {

constexpr std::uint64_t kBeginning = 64 << 10;     // tells what a file is
constexpr std::uint64_t kHeader = 96 << 10;        // most headers of safetensors files fit
constexpr std::uint64_t kGgufBeginning = 4 << 20;  // most vocabularies fit
constexpr std::uint64_t kZipEnd = 65'557;          // the end record with the longest comment
constexpr std::uint64_t kRoundTrip = 256 << 10;    // what arrives while one more request would be under way
constexpr std::uint64_t kLargestPiece = 8 << 20;   // several connections share what is larger
constexpr std::uint64_t kSmallestPiece = 1 << 20;  // not worth sharing
constexpr std::uint64_t kAheadPiece = 4 << 20, kMostAhead = 96 << 20;
constexpr unsigned kWasteShare = 20;  // gaps are read through up to a twentieth of the bytes

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
  HttpSource(std::shared_ptr<HttpClient> client, Remote remote)
      : client_(std::move(client)), name_(remote.name), remote_(std::move(remote)) {
    read_ends();
  }
  ~HttpSource() override { client_->give_memory(kept_); }
  HttpSource(const HttpSource&) = delete;
  HttpSource& operator=(const HttpSource&) = delete;

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return *remote_.total; }
  std::uint64_t bytes_per_round_trip() const override { return kRoundTrip; }
  std::optional<FileLocation> location(std::uint64_t offset) const override { return FileLocation{name_, offset}; }
  std::string identity() const override {
    const std::string& known = remote_.digest.empty() ? remote_.etag : remote_.digest;
    return known.empty() ? std::string() : fmt::format("{} {} {}", name_, known, *remote_.total);
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
      count_read(range.out.size());
      const ReadRange rest = ahead_.take(take_kept(range), [&](std::span<Fetch> announced) { fetch_all(announced); });
      if (!rest.out.empty()) missing.push_back(rest);
    }
    if (missing.empty()) return;
    if (missing.size() == 1 && missing[0].out.size() < kBeginning) return read_ahead(missing[0]);
    fetch_pieces(pieces_of(missing));
  }

  void prefetch(std::span<const ByteRange> ranges) const override {
    const auto is_good = [&](const ByteRange& range) { return is_inside(range.offset, range.size, size_bytes()); };
    if (std::all_of(ranges.begin(), ranges.end(), is_good)) ahead_.announce(ranges);
  }

 private:
  void read_ends() {
    const bool is_header = name_.ends_with(".safetensors"), is_gguf = name_.ends_with(".gguf");
    std::vector<std::byte> begin(is_gguf ? kGgufBeginning : is_header ? kHeader : kBeginning), end;
    std::vector<Fetch> fetches{{{0, begin.size(), false}, begin}};
    const bool may_be_zip = !is_header && !is_gguf && !name_.ends_with(".json");
    if (may_be_zip) {  // its directory is at the end
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

  // The oldest windows make room for a new one. If other files have the memory, the bytes are read again when they are
  // wanted again.
  void keep(Window window) const {
    const std::lock_guard lock(mutex_);
    while (!client_->take_memory(window.bytes.size())) {
      if (windows_.empty()) return;
      client_->give_memory(windows_.back().bytes.size());
      kept_ -= windows_.back().bytes.size();
      windows_.pop_back();
    }
    kept_ += window.bytes.size();
    windows_.push_front(std::move(window));
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
        const std::uint64_t share = std::clamp<std::uint64_t>(out.size() / 8, kSmallestPiece, kLargestPiece);
        for (std::uint64_t at = 0; at < out.size(); at += share) {
          const std::uint64_t size = std::min<std::uint64_t>(share, out.size() - at);
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
  mutable Ahead ahead_{kAheadPiece, kMostAhead};
  mutable std::mutex mutex_;
  mutable Remote remote_;
  mutable std::list<Window> windows_;  // the latest comes first
  mutable std::uint64_t kept_ = 0;
};

}  // namespace

SourcePtr http_source(std::shared_ptr<HttpClient> client, Remote remote) {
  return std::make_shared<HttpSource>(std::move(client), std::move(remote));
}

}  // namespace ballast::net
