#include "formats/safetensors/reader.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "core/cursor.hpp"
#include "core/remedy.hpp"
#include "formats/safetensors/header.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::safetensors {
namespace {

std::uint64_t header_bytes(const Source& source, const Limits& limits) {
  if (is_too_short(source)) {
    throw Error(Errc::malformed, "a file of " + std::to_string(source.size_bytes()) +
                                     " bytes is too short for the length of a safetensors header")
        .hint("the file was cut short: an interrupted download or copy?");
  }
  std::array<std::byte, kLengthBytes> first;
  source.read(0, first);
  const std::uint64_t length = Cursor(first).u64("header's length");
  if (length > limits.max_header_bytes) {
    throw Error(Errc::limit, "the header is said to have " + std::to_string(length) + " bytes, more than the " +
                                 std::to_string(limits.max_header_bytes) + " that are allowed")
        .at_byte(0)
        .hint(raise_limit("max_header_bytes"));
  }
  if (length > source.size_bytes() - kLengthBytes) {
    throw Error(Errc::malformed, "the header is said to have " + std::to_string(length) + " bytes, but only " +
                                     std::to_string(source.size_bytes() - kLengthBytes) + " follow")
        .at_byte(0)
        .hint("the file was cut short: an interrupted download or copy?");
  }
  return length;
}

bool is_space(std::byte b) {
  return b == std::byte{' '} || b == std::byte{'\n'} || b == std::byte{'\t'} || b == std::byte{'\r'};
}
bool is_letter(std::byte b) { return is_space(b) || (b > std::byte{' '} && b < std::byte{0x7f}); }

bool all_of(std::span<const std::byte> bytes, bool (*is)(std::byte)) {
  return std::all_of(bytes.begin(), bytes.end(), is);
}

bool begins_as_header(std::span<const std::byte> text) {
  if (text.size() < 2 || text[0] != std::byte{'{'}) return false;
  return text[1] == std::byte{'"'} || text[1] == std::byte{'}'} || is_space(text[1]);
}

// A header is padded with fewer than eight spaces, or with a few more.
bool ends_as_header(const Source& source, std::uint64_t length) {
  constexpr std::uint64_t kMostSpaces = 64;
  std::array<std::byte, kMostSpaces> buffer;
  const auto last = std::span(buffer).first(static_cast<std::size_t>(std::min(length, kMostSpaces)));
  source.read(kLengthBytes + length - last.size(), last);
  const auto end = std::find_if_not(last.rbegin(), last.rend(), is_space);
  return end != last.rend() && *end == std::byte{'}'};
}

}  // namespace

std::shared_ptr<const PaddedText> read_header_text(const Source& source, const Limits& limits) {
  const std::uint64_t length = header_bytes(source, limits);
  auto text = std::make_shared<PaddedText>(length);
  source.read(kLengthBytes, text->bytes());
  return text;
}

Checkpoint read(const SourcePtr& source, const ReadOptions& options) try {
  const auto text = read_header_text(*source, options.limits);
  const std::uint64_t data_begin = kLengthBytes + text->view().size();
  const std::uint64_t data_bytes = source->size_bytes() - data_begin;
  Header header = parse_header(text, source_storage(source, data_begin, data_bytes), options.limits);

  Checkpoint checkpoint;
  if (header.leading_space) checkpoint.notes.push_back({source->name(), "the header begins with spaces"});
  if (const std::uint64_t trailing = data_bytes - header.data_end; trailing != 0) {
    const std::string what = std::to_string(trailing) + " bytes follow the last tensor";
    if (!options.lenient) {
      throw Error(Errc::malformed, what)
          .at_byte(data_begin + header.data_end)
          .hint(mention(Remedy::lenient) + " reads the tensors and passes over the rest");
    }
    checkpoint.notes.push_back({source->name(), what + "; passed over"});
  }
  checkpoint.tensors = std::move(header.tensors);
  checkpoint.metadata = std::move(header.metadata);
  checkpoint.files.push_back({source->name(), source->size_bytes(), source});
  checkpoint.target = source->name();
  return checkpoint;
} catch (Error& error) {
  throw error.in(source->name());
}

bool looks_like_safetensors(std::span<const std::byte> first_bytes) {
  // The length can spell anything in its lower half (640 begins like a pickle), but nobody has a header of 4 GiB.
  constexpr std::size_t kLowerHalf = 4;
  std::size_t i = kLowerHalf;
  while (i < kLengthBytes && i < first_bytes.size() && first_bytes[i] == std::byte{0}) ++i;
  if (i < kLengthBytes) return false;
  while (i < first_bytes.size() && is_space(first_bytes[i])) ++i;
  return i < first_bytes.size() && first_bytes[i] == std::byte{'{'};
}

bool is_too_short(const Source& source) { return source.size_bytes() < kLengthBytes; }

bool looks_like_damaged_safetensors(const Source& source, std::span<const std::byte> first_bytes) {
  if (is_too_short(source)) return false;
  const auto length_bytes = first_bytes.first(kLengthBytes), text = first_bytes.subspan(kLengthBytes);
  const std::uint64_t length = Cursor(length_bytes).u64("header's length");
  if (text.empty()) return length >> 32 == 0;
  if (begins_as_header(text)) return !all_of(length_bytes, is_letter);
  if (length == 0 || length > source.size_bytes() - kLengthBytes) return false;
  const auto looked_at = text.first(static_cast<std::size_t>(std::min<std::uint64_t>(length, text.size())));
  return all_of(looked_at, is_letter) || ends_as_header(source, length);
}

}  // namespace ballast::safetensors
