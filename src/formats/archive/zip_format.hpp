// The numbers of the zip format (PKWARE's APPNOTE.TXT) that more than one file of the reader needs.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast::archive {

inline constexpr std::string_view kLocalHeader{"PK\x03\x04"};
inline constexpr std::string_view kCentralHeader{"PK\x01\x02"};
inline constexpr std::string_view kDescriptor{"PK\x07\x08"};
inline constexpr std::string_view kEndRecord{"PK\x05\x06"};
inline constexpr std::string_view kZip64EndRecord{"PK\x06\x06"};
inline constexpr std::string_view kZip64Locator{"PK\x06\x07"};

inline constexpr std::uint64_t kLocalHeaderBytes = 30;
inline constexpr std::uint64_t kCentralHeaderBytes = 46;
inline constexpr std::uint64_t kEndRecordBytes = 22;
inline constexpr std::uint64_t kZip64EndRecordBytes = 56;
inline constexpr std::uint64_t kZip64LocatorBytes = 20;

// A 32-bit (16-bit) field has this value if the number is in a zip64 field.
inline constexpr std::uint64_t kIn64 = 0xFFFFFFFF;
inline constexpr std::uint64_t kIn64Short = 0xFFFF;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

inline constexpr std::uint16_t kHasDescriptor = 1 << 3;
inline constexpr std::uint16_t kNameIsUtf8 = 1 << 11;

// Versions of the format go up to 6.3; Python refuses what needs a later one.
inline constexpr int kNewestVersion = 63;

// A deflate stream makes at most this many bytes of one byte: two bits can repeat 258 bytes.
inline constexpr std::uint64_t kMaxDeflateRatio = 1032;

}  // namespace ballast::archive
