#include "formats/safetensors/encode.hpp"

#include <ballast/error.hpp>

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/json_string.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/safetensors/header.hpp"

namespace ballast::safetensors {
namespace {

constexpr std::uint64_t kAlignment = 8;  // of the data's beginning

void append_number(std::string& out, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

}  // namespace

void append_metadata(std::string& out, const Metadata& metadata) {
  out += "\"__metadata__\":{";
  bool first = true;
  for (const auto& [key, value] : metadata) {
    if (valid_utf8_prefix(key) != key.size() || valid_utf8_prefix(value) != value.size()) {
      throw Error(Errc::unsupported, "metadata " + quote(key) + " is not UTF-8, which safetensors cannot store");
    }
    if (!std::exchange(first, false)) out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
}

void append_entry(std::string& out, const StateDict::Entry& entry, std::uint64_t begin) {
  append_json_string(out, entry.name);
  out += ":{\"dtype\":\"";
  out += name(entry.tensor.dtype());
  out += "\",\"shape\":[";
  for (std::size_t i = 0; i < entry.tensor.rank(); ++i) {
    if (i != 0) out += ',';
    append_number(out, entry.tensor.shape()[i]);
  }
  out += "],\"data_offsets\":[";
  append_number(out, begin);
  out += ',';
  append_number(out, begin + entry.tensor.nbytes());
  out += "]}";
}

std::vector<std::byte> frame_header(std::string_view text, std::uint64_t length, const Limits& limits) {
  if (text.size() > length) length = (text.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (length > limits.max_header_bytes) {
    throw Error(Errc::limit, "the header would have " + std::to_string(length) + " bytes, more than the " +
                                 std::to_string(limits.max_header_bytes) + " that readers accept")
        .hint("write several files with " + mention(Remedy::max_shard_bytes));
  }
  std::vector<std::byte> bytes(kLengthBytes + length, std::byte{' '});
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(bytes.data(), &length, kLengthBytes);
  std::memcpy(bytes.data() + kLengthBytes, text.data(), text.size());
  return bytes;
}

}  // namespace ballast::safetensors
