#include "checkpoint/sidecars/config_text.hpp"

#include <algorithm>
#include <utility>

#include <ballast/error.hpp>

#include "core/json_parse.hpp"
#include "core/json_string.hpp"
#include "core/json_text.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kDeepestConfig = 64;

}  // namespace

ConfigText::ConfigText(std::string text) : text_(without_byte_order_mark(text)) { read(); }

// Reads the members of the object, and those of the configurations in it.
void ConfigText::read() {
  const PaddedText padded(text_);
  JsonText in(padded, 0, kDeepestConfig, JsonText::Numbers::python);
  in.check_utf8();
  members_.clear();

  const auto read_object = [&](const auto& self, std::size_t depth) -> void {
    in.expect('{', "at the beginning of a configuration");
    if (depth == 0) begin_ = in.byte();
    std::size_t previous = members_.size();
    bool has_previous = false;
    KeysOfObject keys;
    if (in.take('}')) return;
    do {
      in.skip_space();
      const std::size_t begin = in.byte();
      std::string key(in.string("a key").value);
      keys.add(key);
      in.expect(':', "after a key");
      in.skip_space();
      const std::size_t value_begin = in.byte();
      const char next = text_[std::min(value_begin, text_.size() - 1)];
      const std::size_t number = members_.size();
      members_.push_back({std::move(key), {}, depth, begin, value_begin, 0});
      if (depth < kDeepestConfig && next == '{' && members_[number].key.ends_with("_config")) {
        self(self, depth + 1);
      } else if (next == '"') {
        members_[number].string = std::string(in.string("a value").value);
      } else {
        in.skip_value(depth + 1);
      }
      members_[number].end = in.byte();
      if (has_previous) {
        members_[number].previous_end = members_[previous].end;
        members_[previous].next = begin;
      }
      previous = number;
      has_previous = true;
    } while (in.take(','));
    in.expect('}', "at the end of a configuration");
    if (keys.has_one_twice()) in.fail("a key is there twice");
  };
  read_object(read_object, 0);
  in.skip_space();
  if (!in.at_end()) in.fail("something follows the configuration");
}

std::optional<std::string> ConfigText::find(std::string_view key) const {
  const auto found =
      std::ranges::find_if(members_, [&](const Member& member) { return member.depth == 0 && member.key == key; });
  return found == members_.end() ? std::nullopt : found->string;
}

std::size_t ConfigText::replace(std::string_view key, std::string_view from, std::string_view to) {
  std::string value;
  append_json_string(value, to);
  std::size_t count = 0;
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {  // what is before keeps its place
    if (member->key != key || member->string != from) continue;
    text_.replace(member->value_begin, member->end - member->value_begin, value);
    ++count;
  }
  read();
  return count;
}

void ConfigText::add(std::string_view key, const Json& value) {
  std::size_t end = begin_;
  std::string_view space;  // before a key: a new line, or nothing
  for (const Member& member : members_) {
    if (member.depth != 0) continue;
    if (end == begin_) space = std::string_view(text_).substr(begin_, member.begin - begin_);
    end = member.end;
  }
  const std::size_t line = space.rfind('\n');
  const std::size_t indent = line == space.npos ? 0 : space.size() - line - 1;
  std::string added = end == begin_ ? "" : ",";
  added += space;
  append_json_string(added, key);
  added += ": ";
  for (const char c : to_string(value, static_cast<unsigned>(indent))) {
    added += c;
    if (c == '\n') added += space.substr(line + 1);
  }
  text_.insert(end, added);
  read();
}

std::size_t ConfigText::remove(std::string_view key) {
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> ranges;
  for (const Member& member : members_) {
    if (member.key != key || (!ranges.empty() && member.begin < ranges.back().end)) continue;
    // The comma goes with it: the one behind it, or the one before it if it is the last.
    const bool is_last = member.next == 0 && member.previous_end != 0;
    ranges.push_back({is_last ? member.previous_end : member.begin, member.next != 0 ? member.next : member.end});
  }
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
    text_.erase(range->begin, range->end - range->begin);
  read();
  return ranges.size();
}

}  // namespace ballast
