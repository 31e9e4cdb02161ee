#include "formats/archive/inflate_storage.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"

namespace ballast::archive {
namespace {

constexpr std::size_t kWindowBytes = 64 << 10;

// One pass over a raw deflate stream.
class Inflater {
 public:
  Inflater(const Source& source, std::uint64_t offset, std::uint64_t packed_bytes)
      : source_(source),
        next_(offset),
        end_(offset + packed_bytes),
        input_(static_cast<std::size_t>(std::min<std::uint64_t>(packed_bytes, kWindowBytes))) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // raw; fails only if memory runs out
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out`, and returns how many bytes it filled: fewer if the stream ends, breaks or runs out of input.
  std::size_t inflate_some(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && state_ == State::running) done += step(out.subspan(done));
    return done;
  }

  // Whether the stream is at its end: it may take a few more bits to say so, but may not give more bytes.
  bool ends_here() {
    std::byte one_more;
    goes_on_ = inflate_some({&one_more, 1}) != 0;
    return !goes_on_ && state_ == State::ended;
  }

  bool has_ended() const noexcept { return state_ == State::ended; }
  bool goes_on() const noexcept { return goes_on_; }                                // behind where it should have ended
  std::uint64_t input_offset() const noexcept { return next_ - stream_.avail_in; }  // in the source
  std::uint64_t input_left() const noexcept { return end_ - input_offset(); }

  const char* why_it_stopped() const noexcept {
    if (goes_on_) return "goes on";
    switch (state_) {
      case State::ended: return "ends";
      case State::broken: return "is broken";
      default: return "is cut off";
    }
  }

 private:
  enum class State { running, ended, broken, starved };

  std::size_t step(std::span<std::byte> out) {
    if (stream_.avail_in == 0) refill();
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    const uInt input_before = stream_.avail_in;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t given = room - stream_.avail_out;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END)
      state_ = State::ended;
    else if (result != Z_OK && result != Z_BUF_ERROR)
      state_ = State::broken;
    else if (given == 0 && input_before == stream_.avail_in && next_ == end_)
      state_ = State::starved;
    return given;
  }

  void refill() {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(end_ - next_, input_.size()));
    source_.read(next_, std::span(input_).first(size));
    next_ += size;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(size);
  }

  const Source& source_;
  std::uint64_t next_, end_;  // the range of the input that is not yet in the window
  std::vector<std::byte> input_;
  z_stream stream_{};
  State state_ = State::running;
  bool goes_on_ = false;
};

class InflateStorage final : public Storage {
 public:
  InflateStorage(SourcePtr source, DeflatedRange range, StreamEnd end)
      : source_(std::move(source)), range_(std::move(range)), end_(end) {}

  std::uint64_t size_bytes() const override { return range_.bytes; }
  bool is_sequential() const override { return true; }
  std::optional<std::uint32_t> declared_crc32() const override { return range_.crc32; }
  void check_unchanged() const override { source_->check_unchanged(); }
  Derivation derivation() const override {
    const auto place = source_->location(range_.offset);
    return {"inflate", {}, place ? std::optional(Location{place->file, place->offset}) : std::nullopt};
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    // An error, or the end, leaves no stream behind: the next read begins again at the first byte.
    std::unique_ptr<Inflater> stream = std::exchange(stream_, nullptr);
    if (!stream || offset < position_) {
      stream = std::make_unique<Inflater>(*source_, range_.offset, range_.packed_bytes);
      position_ = 0;
    }
    skip_to(*stream, offset);
    take(*stream, out);
    if (position_ == range_.bytes)
      check_end(*stream);
    else
      stream_ = std::move(stream);
  }

 private:
  void skip_to(Inflater& stream, std::uint64_t offset) const {
    if (position_ == offset) return;
    std::vector<std::byte> skipped(static_cast<std::size_t>(std::min<std::uint64_t>(offset - position_, kWindowBytes)));
    while (position_ < offset)
      take(stream, std::span(skipped).first(
                       static_cast<std::size_t>(std::min<std::uint64_t>(offset - position_, skipped.size()))));
  }

  void take(Inflater& stream, std::span<std::byte> out) const {
    const std::size_t got = stream.inflate_some(out);
    position_ += got;
    if (got == out.size()) return;
    throw complaint(fmt::format("has a deflated stream that {} after {} of {} bytes", stream.why_it_stopped(),
                                position_, range_.bytes),
                    stream.input_offset());
  }

  void check_end(Inflater& stream) const {
    if (end_ == StreamEnd::ignored) return;
    if (!stream.ends_here())
      throw complaint(fmt::format("has a deflated stream that {} behind the {} bytes that are declared",
                                  stream.why_it_stopped(), range_.bytes),
                      stream.input_offset());
    if (stream.input_left() != 0)
      throw complaint(fmt::format("has {} bytes behind its deflated stream", stream.input_left()),
                      stream.input_offset());
  }

  Error complaint(const std::string& what, std::uint64_t offset) const {
    return Error(Errc::malformed, fmt::format("member {} {}", quote(range_.name), what))
        .in(source_->name())
        .at_byte(offset);
  }

  SourcePtr source_;
  DeflatedRange range_;
  StreamEnd end_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Inflater> stream_;
  mutable std::uint64_t position_ = 0;  // of the stream, in inflated bytes
};

}  // namespace

StoragePtr inflate_storage(SourcePtr source, DeflatedRange range, StreamEnd end) {
  return std::make_shared<InflateStorage>(std::move(source), std::move(range), end);
}

InflatedSize measure_inflated(const Source& source, std::uint64_t offset, std::uint64_t packed_bytes,
                              std::uint64_t limit) {
  Inflater stream(source, offset, packed_bytes);
  std::vector<std::byte> window(kWindowBytes);
  InflatedSize size;
  while (size.bytes < limit) {
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(limit - size.bytes, window.size()));
    const std::size_t got = stream.inflate_some(std::span(window).first(room));
    size.bytes += got;
    if (got < room) break;
  }
  size.is_whole = size.bytes < limit ? stream.has_ended() : stream.ends_here();
  size.is_over_limit = stream.goes_on();
  size.packed_bytes = stream.input_offset() - offset;
  return size;
}

}  // namespace ballast::archive
