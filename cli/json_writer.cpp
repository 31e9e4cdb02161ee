#include "json_writer.hpp"

#include <cstring>

#include <fmt/format.h>

#include "utf8.hpp"

namespace ballast::cli {
namespace {

// Whether a terminal would obey the character instead of showing it. JSON may escape any character, so a document is
// safe to look at, too.
bool must_escape(char32_t code) {
  if (code < 0x20 || code == '"' || code == '\\') return true;
  if (code >= 0x7F && code < 0xA0) return true;
  const bool bidirectional = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                             (code >= 0x2066 && code <= 0x2069);
  return bidirectional || code == 0x2028 || code == 0x2029;
}

std::string escaped(char32_t code) {
  switch (code) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: return fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  }
}

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

// Counts eight bytes at a time, because nearly all text is plain.
std::size_t count_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101, kHighs = 0x8080'8080'8080'8080;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::uint64_t quote = word ^ (kOnes * '"'), backslash = word ^ (kOnes * '\\');
    // The lowest byte that is not plain has its high bit set; the high bits above it may be wrong.
    const std::uint64_t others = word | (word + kOnes) | (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes);
    if ((others & kHighs) != 0) break;
  }
  while (i < text.size() && is_plain(text[i])) ++i;
  return i;
}

}  // namespace

void JsonWriter::begin(char open, char close, Layout layout) {
  separate();
  out_.write(open);
  open_.push_back({close, layout == Layout::lines});
}

void JsonWriter::end() {
  const Level level = open_.back();
  open_.pop_back();
  if (level.lines && !level.empty) new_line();
  out_.write(level.close);
}

void JsonWriter::key(std::string_view name) {
  separate();
  string(name);
  out_.write(": ");
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  separate();
  string(text);
}

void JsonWriter::separate_lines() {
  if (!open_.back().empty) out_.write(',');
  open_.back().empty = false;
  new_line();
}

void JsonWriter::new_line() {
  out_.write('\n');
  for (std::size_t i = 0; i < open_.size(); ++i) out_.write("  ");
}

void JsonWriter::string(std::string_view text) {
  if (text.size() + 2 <= Output::kMostRoom && count_plain(text) == text.size()) {
    char* const room = out_.room(text.size() + 2);
    room[0] = '"';
    text.copy(room + 1, text.size());  // unlike memcpy, it takes an empty text that lies nowhere
    room[text.size() + 1] = '"';
    return out_.use(text.size() + 2);
  }
  out_.write('"');
  while (!text.empty()) {
    const std::size_t plain = count_plain(text);
    out_.write(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;

    const DecodedCharacter next = decode_utf8(text);
    if (next.size == 0) {
      out_.write("\\ufffd");
      text.remove_prefix(1);
      continue;
    }
    if (must_escape(next.code)) {
      out_.write(escaped(next.code));
    } else {
      out_.write(text.substr(0, next.size));
    }
    text.remove_prefix(next.size);
  }
  out_.write('"');
}

}  // namespace ballast::cli
