// Sources made of sources: a part of one, and one whose beginning is in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ballast/json.hpp>
#include <ballast/limits.hpp>
#include <ballast/source.hpp>

#include "core/padded_text.hpp"

namespace ballast::io {

// Errc::malformed ("ends early") if a range does not lie inside the source.
void require_inside(const Source& source, std::uint64_t offset, std::uint64_t size);

// A part of another source as a source of its own, such as a stored member of an archive. The part must lie inside the
// source.
SourcePtr section(SourcePtr source, std::uint64_t offset, std::uint64_t size, std::string name);

// The same source, whose first bytes (no more than there are) are read now and come from memory later.
SourcePtr with_beginning(SourcePtr source, std::uint64_t size);

// The source behind sections, and the offset in it of the byte at `offset`: for callers that keep a source for its
// data.
struct Position {
  SourcePtr source;
  std::uint64_t offset = 0;
};
Position behind_sections(SourcePtr source, std::uint64_t offset);

// The same ranges, with their offsets counted from `by` bytes further to the front.
template <class Range>
std::vector<Range> shifted(std::span<const Range> ranges, std::uint64_t by) {
  std::vector<Range> moved(ranges.begin(), ranges.end());
  for (Range& range : moved) range.offset += by;
  return moved;
}

// Reads a whole small text; `limit` is a cap on its size (Errc::limit).
std::shared_ptr<const PaddedText> read_text(const Source& source, std::uint64_t limit);
std::shared_ptr<const PaddedText> read_text_file(const std::string& path, std::uint64_t limit);

// The same for an index, whose cap the caller can raise.
std::shared_ptr<const PaddedText> read_text(const Source& source, const Limits& limits);
std::shared_ptr<const PaddedText> read_text_file(const std::string& path, const Limits& limits);

// A configuration beside a model: what Python's json module writes, also behind a byte order mark.
Json read_configuration(const Source& source, const Limits& limits);

}  // namespace ballast::io
