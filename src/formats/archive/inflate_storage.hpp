// Deflated bytes as a storage: inflated as they are read, from the first to the last, never past the declared size.
#pragma once

#include <cstdint>
#include <string>

#include <ballast/source.hpp>
#include <ballast/storage.hpp>

namespace ballast::archive {

struct DeflatedRange {
  std::string name;                            // of the member, for messages
  std::uint64_t offset = 0, packed_bytes = 0;  // of a raw deflate stream that lies inside of its source
  std::uint64_t bytes = 0;                     // the size that it is said to inflate to
  std::uint32_t crc32 = 0;
};

enum class StreamEnd : std::uint8_t {
  exact,    // the stream must end with the last declared byte, and be the whole range
  ignored,  // what lies behind the declared bytes is not looked at
};

// Reading forwards costs what is inflated; reading backwards inflates again from the first byte. Memory is bounded,
// whatever the sizes, and is freed at the end of the stream. Errors are Errc::malformed, at a byte of the source.
StoragePtr inflate_storage(SourcePtr source, DeflatedRange range, StreamEnd end = StreamEnd::exact);

// The size that a stream really inflates to, up to `limit`: for archives that declare a wrong size.
struct InflatedSize {
  std::uint64_t bytes = 0;         // before it ended, broke or reached the limit
  std::uint64_t packed_bytes = 0;  // that were taken from the range
  bool is_whole = false;           // whether it ended
  bool is_over_limit = false;      // whether it goes on beyond the limit
};
InflatedSize measure_inflated(const Source& source, std::uint64_t offset, std::uint64_t packed_bytes,
                              std::uint64_t limit);

}  // namespace ballast::archive
