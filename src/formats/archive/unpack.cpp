#include "formats/archive/unpack.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace ballast::archive {
namespace {

using End = Unpacked::End;
using namespace std::string_view_literals;

constexpr std::size_t kPieceBytes = 64 << 10;

// Reads the source front to back, a piece at a time.
class Pieces {
 public:
  explicit Pieces(const Source& source) : source_(source), buffer_(kPieceBytes) {}

  // Empty at the end.
  std::span<std::byte> next() {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, source_.size_bytes() - at_));
    const std::span<std::byte> piece(buffer_.data(), size);
    source_.read(at_, piece);
    at_ += size;
    return piece;
  }

 private:
  const Source& source_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
};

bool keep(std::span<const std::byte> made, std::uint64_t most, Unpacked& unpacked) {
  if (made.size() > most - unpacked.bytes.size()) return false;
  unpacked.bytes.insert(unpacked.bytes.end(), made.begin(), made.end());
  return true;
}

struct StreamInflater {
  explicit StreamInflater(Packing packing) {
    is_ready = inflateInit2(&stream, packing == Packing::gzip ? 15 + 16 : 15) == Z_OK;
  }
  ~StreamInflater() {
    if (is_ready) inflateEnd(&stream);
  }
  StreamInflater(const StreamInflater&) = delete;
  StreamInflater& operator=(const StreamInflater&) = delete;

  z_stream stream = {};
  bool is_ready = false;
};

Unpacked inflate_all(const Source& source, Packing packing, std::uint64_t most) {
  Unpacked unpacked;
  StreamInflater inflater(packing);
  if (!inflater.is_ready) return unpacked;
  Pieces pieces(source);
  std::vector<std::byte> made(kPieceBytes);
  z_stream& stream = inflater.stream;
  bool has_ended = false;  // whether a member has ended and nothing has followed it yet
  for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    stream.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(piece.size());
    while (stream.avail_in != 0 || stream.avail_out == 0) {
      if (has_ended && stream.avail_in == 0) break;
      if (has_ended && (packing != Packing::gzip || inflateReset(&stream) != Z_OK)) return unpacked;
      stream.next_out = reinterpret_cast<Bytef*>(made.data());
      stream.avail_out = static_cast<uInt>(made.size());
      const int result = inflate(&stream, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return unpacked;
      if (!keep(std::span(made).first(made.size() - stream.avail_out), most, unpacked)) {
        unpacked.end = End::too_large;
        return unpacked;
      }
      has_ended = result == Z_STREAM_END;
      if (result == Z_BUF_ERROR) break;
    }
  }
  if (has_ended) unpacked.end = End::whole;
  return unpacked;
}

Unpacked decompress_all(const Source& source, std::uint64_t most) {
  Unpacked unpacked;
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) return unpacked;
  Pieces pieces(source);
  std::vector<std::byte> made(kPieceBytes);
  std::size_t left = 1;  // of a frame; 0 at its end
  for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    ZSTD_inBuffer in = {piece.data(), piece.size(), 0};
    bool is_full = false;
    while (in.pos < in.size || is_full) {
      ZSTD_outBuffer out = {made.data(), made.size(), 0};
      left = ZSTD_decompressStream(context.get(), &out, &in);
      if (ZSTD_isError(left) != 0) return unpacked;
      if (!keep(std::span(made).first(out.pos), most, unpacked)) {
        unpacked.end = End::too_large;
        return unpacked;
      }
      is_full = left != 0 && out.pos == out.size;  // behind its end, a frame has nothing more to give
    }
  }
  if (left == 0) unpacked.end = End::whole;
  return unpacked;
}

}  // namespace

std::string_view name(Packing packing) noexcept {
  return packing == Packing::gzip ? "gzip" : packing == Packing::zlib ? "zlib" : "zstd";
}

std::optional<Packing> packing_of(std::string_view first) noexcept {
  if (first.size() < 4) return std::nullopt;
  if (first.starts_with("\x1f\x8b\x08"sv)) return Packing::gzip;
  if (first.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::zstd;
  // zlib has no magic, but two bytes: the method and the window, and a check of both.
  const unsigned method = static_cast<unsigned char>(first[0]), check = static_cast<unsigned char>(first[1]);
  if (method == 0x78 && (method * 256 + check) % 31 == 0 && (check & 0x20) == 0) return Packing::zlib;
  return std::nullopt;
}

Unpacked unpack(const Source& source, Packing packing, std::uint64_t most) {
  return packing == Packing::zstd ? decompress_all(source, most) : inflate_all(source, packing, most);
}

}  // namespace ballast::archive
