#include "tensor/packed_frames.hpp"

#define ZSTD_STATIC_LINKING_ONLY  // for the parameter that forces the compression of literals
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <new>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "kernels/planes.hpp"

namespace ballast {
namespace {

constexpr std::uint32_t kSkippableMagic = 0x184D2A5E, kSeekTableMagic = 0x8F92EAB1;
constexpr std::size_t kLargestElement = 16, kBlockHeaderBytes = 3;

// Every plane may end with a short block.
static_assert(ZSTD_COMPRESSBOUND(kChunkBytes) + kLargestElement * kBlockHeaderBytes <= kMostFrameBytes);

void append_u32(std::vector<std::byte>& to, std::uint64_t value) {
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t chunk_bytes(std::uint64_t index, std::uint64_t bytes) {
  return std::min<std::uint64_t>(kChunkBytes, bytes - index * kChunkBytes);
}

// Byte planes of weights can be compressed only by their uneven frequencies: repetitions in them are short and due to
// chance, and references to these take more room than the bytes. The exponents of Gaussian BF16 shrink 3.08-fold by
// entropy coding alone, at 0.75 GB/s and back at 1.6; at level 1 it is 2.79, 0.23 and 0.8. So the level is one that
// hardly looks for repetitions, with the compression of literals forced. A plane of mantissas is recognized at 3.5 GB/s
// as not worth it, and stored as it is. If the library does not know the parameter, level 1 is the fastest that
// compresses literals.
void set_parameters(ZSTD_CCtx* context) {
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  const bool is_forced =
      ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable)) == 0;
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, is_forced ? -1000 : 1);
}

void expect(std::uint64_t found, std::uint64_t expected, const char* what, const Cursor& in) {
  if (found == expected) return;
  throw Error(Errc::malformed, fmt::format("a seek table whose {} is {} instead of {}", what, found, expected))
      .at_byte(in.position() - 4);
}

}  // namespace

Planes planes_of(DType dtype) noexcept {
  const DTypeInfo& type = info(dtype);
  const bool is_whole = type.block_elements == 1 && type.block_bytes <= kLargestElement;
  if (!is_whole || !std::has_single_bit(type.block_bytes)) return {};
  const std::size_t numbers = type.kind == DTypeKind::complex ? 2 : type.kind == DTypeKind::floating ? 1 : 0;
  const std::size_t number_bytes = numbers == 0 ? 0 : type.block_bytes / numbers;
  return {type.block_bytes, number_bytes > 1 ? number_bytes : 0};  // a number of one byte would only get other codes
}

void Planes::split(std::span<const std::byte> elements, std::span<std::byte> planes) const noexcept {
  kernels::split_planes(elements, count, planes);
  if (number_bytes == 0) return;
  const std::size_t step = planes.size() / count * number_bytes;
  for (; !planes.empty(); planes = planes.subspan(step))
    kernels::rotate_left_in_planes(planes.first(step), number_bytes);
}

void Planes::join(std::span<std::byte> planes, std::span<std::byte> elements) const noexcept {
  const std::size_t step = planes.size() / count * number_bytes;
  for (auto rest = planes; number_bytes != 0 && !rest.empty(); rest = rest.subspan(step))
    kernels::rotate_right_in_planes(rest.first(step), number_bytes);
  kernels::join_planes(planes, count, elements);
}

std::vector<std::byte> seek_table(std::span<const std::uint32_t> frame_bytes, std::uint64_t bytes) {
  std::vector<std::byte> table;
  table.reserve(static_cast<std::size_t>(seek_table_bytes(frame_bytes.size())));
  append_u32(table, kSkippableMagic);
  append_u32(table, seek_table_bytes(frame_bytes.size()) - 8);
  for (std::size_t i = 0; i < frame_bytes.size(); ++i) {
    append_u32(table, frame_bytes[i]);
    append_u32(table, chunk_bytes(i, bytes));
  }
  append_u32(table, frame_bytes.size());
  table.push_back(std::byte{0});
  append_u32(table, kSeekTableMagic);
  return table;
}

std::vector<std::uint64_t> parse_seek_table(std::span<const std::byte> table, std::uint64_t table_offset,
                                            std::uint64_t bytes) {
  const std::uint64_t chunks = chunk_count(bytes);
  Cursor in(table, table_offset);
  in.require_room_for(chunks, 8, "number of frames");
  expect(in.u32("magic of the seek table"), kSkippableMagic, "first magic", in);
  expect(in.u32("size of the seek table"), seek_table_bytes(chunks) - 8, "size", in);

  std::vector<std::uint64_t> begins = {0};
  begins.reserve(static_cast<std::size_t>(chunks) + 1);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::uint32_t frame_bytes = in.u32("bytes of a frame");
    if (frame_bytes > kMostFrameBytes) {
      throw Error(Errc::malformed, fmt::format("a seek table with a frame of {} bytes", frame_bytes))
          .at_byte(in.position() - 4);
    }
    begins.push_back(begins.back() + frame_bytes);
    expect(in.u32("bytes of a chunk"), chunk_bytes(i, bytes), "chunk", in);
  }
  expect(in.u32("number of frames"), chunks, "number of frames", in);
  const std::uint8_t descriptor = in.u8("descriptor of the seek table");
  if (descriptor != 0) {
    throw Error(Errc::malformed, fmt::format("a seek table with descriptor {} instead of 0", descriptor))
        .at_byte(in.position() - 1);
  }
  expect(in.u32("magic of the seek table"), kSeekTableMagic, "last magic", in);
  if (begins.back() != table_offset) {
    throw Error(Errc::malformed,
                fmt::format("a seek table for frames of {} bytes, where there are {}", begins.back(), table_offset))
        .at_byte(table_offset);
  }
  return begins;
}

void FramePacker::Free::operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
void FrameUnpacker::Free::operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }

FramePacker::FramePacker()
    : context_(ZSTD_createCCtx()), frame_(std::make_unique_for_overwrite<std::byte[]>(kMostFrameBytes)) {
  if (!context_) throw std::bad_alloc();
  set_parameters(context_.get());
}

// Flushing ends a block after every plane: a block has one table of codes, and planes have nothing in common.
std::span<const std::byte> FramePacker::pack(std::span<const std::byte> planes, std::size_t plane_count) {
  const std::size_t plane_bytes = planes.size() / plane_count;
  ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(context_.get(), planes.size());
  ZSTD_outBuffer out{frame_.get(), kMostFrameBytes, 0};
  for (std::size_t k = 0; k < plane_count; ++k) {
    ZSTD_inBuffer in{planes.data() + k * plane_bytes, plane_bytes, 0};
    const auto how = k + 1 == plane_count ? ZSTD_e_end : ZSTD_e_flush;
    // The buffer has room for the worst case, so this fails only if there is no memory.
    if (ZSTD_compressStream2(context_.get(), &out, &in, how) != 0) throw std::bad_alloc();
  }
  return {frame_.get(), out.pos};
}

FrameUnpacker::FrameUnpacker() : context_(ZSTD_createDCtx()) {
  if (!context_) throw std::bad_alloc();
}

// zstd itself would also accept a second frame, pass over skippable frames, and decode those of its first versions,
// with decoders that few people have examined since.
void FrameUnpacker::unpack(std::span<const std::byte> frame, std::span<std::byte> planes) {
  Cursor in(frame);
  if (frame.size() < 4 || in.u32("magic") != ZSTD_MAGICNUMBER)
    throw Error(Errc::malformed, "a frame that is none of zstd's");
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
    throw Error(Errc::malformed, "a frame that ends elsewhere");
  const std::size_t size =
      ZSTD_decompressDCtx(context_.get(), planes.data(), planes.size(), frame.data(), frame.size());
  if (ZSTD_isError(size))
    throw Error(Errc::malformed, fmt::format("a frame that does not decompress ({})", ZSTD_getErrorName(size)));
  if (size != planes.size()) {
    throw Error(Errc::malformed,
                fmt::format("a frame that decompresses to {} bytes instead of {}", size, planes.size()));
  }
}

}  // namespace ballast
