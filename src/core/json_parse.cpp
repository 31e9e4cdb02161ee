#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/json_parse.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMaxValues = 8 << 20;  // each value takes a few hundred bytes of memory at most

void refuse_duplicates(const Json::Members& members) {
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const auto& [key, value] : members) keys.push_back(key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end()) throw Error(Errc::malformed, "the key " + quote(*twice) + " is there twice");
}

class DocumentParser {
 public:
  explicit DocumentParser(JsonText& text) : text_(text) {}

  Json run() {
    for (;;) {
      Json value;
      if (begin_container(value)) continue;
      while (!levels_.empty()) {
        add(std::exchange(value, {}));
        if (text_.take(',')) break;
        text_.expect(levels_.back().close(), "or ',' after a value");
        value = end_container();
      }
      if (levels_.empty()) return value;
      take_key();
    }
  }

 private:
  struct Level {
    bool is_object;
    Json::List list;
    Json::Members members;  // while a value is read, the last member has none yet

    char close() const { return is_object ? '}' : ']'; }
  };

  // Returns true if a list or an object begins that is not empty; otherwise `value` is complete.
  bool begin_container(Json& value) {
    if (++count_ > kMaxValues) throw Error(Errc::limit, fmt::format("JSON of more than {} values", kMaxValues));
    const bool is_object = text_.take('{');
    if (!is_object && !text_.take('[')) {
      value = scalar();
      return false;
    }
    if (levels_.size() == kMaxJsonDepth)
      throw Error(Errc::limit, fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth));
    levels_.push_back({is_object, {}, {}});
    if (text_.take(levels_.back().close())) {
      value = end_container();
      return false;
    }
    take_key();
    return true;
  }

  void take_key() {
    if (!levels_.back().is_object) return;
    levels_.back().members.emplace_back(text_.string("a key").value, Json());
    text_.expect(':', "after a key");
  }

  void add(Json value) {
    Level& level = levels_.back();
    if (level.is_object)
      level.members.back().second = std::move(value);
    else
      level.list.push_back(std::move(value));
  }

  Json end_container() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (!level.is_object) return std::move(level.list);
    refuse_duplicates(level.members);
    return std::move(level.members);
  }

  Json scalar() {
    text_.skip_space();
    if (*text_.mark() == '"') return text_.string("a value").value;
    if (text_.take_exactly("null")) return {};
    if (text_.take_exactly("true")) return true;
    if (text_.take_exactly("false")) return false;
    return std::visit([](auto number) { return Json(number); }, text_.number());
  }

  JsonText& text_;
  std::vector<Level> levels_;
  std::size_t count_ = 0;
};

}  // namespace

Json next_value(JsonText& text) { return DocumentParser(text).run(); }

Json parse_json(const PaddedText& padded, JsonText::Numbers numbers) {
  JsonText text(padded, 0, kMaxJsonDepth, numbers);
  try {
    text.check_utf8();
    Json value = next_value(text);
    text.skip_space();
    if (!text.at_end()) text.fail("something follows the value");
    return value;
  } catch (const Error& error) {
    // The text may be a part of a file, so a byte offset in the text is not a byte offset in the file.
    if (!error.offset()) throw;
    throw Error(Errc::malformed, fmt::format("this is no JSON: {} at its byte {}", error.message(), *error.offset()));
  }
}

Json Json::parse(std::string_view text) { return parse_json(PaddedText(text), JsonText::Numbers::json); }
Json Json::parse_python(std::string_view text) { return parse_json(PaddedText(text), JsonText::Numbers::python); }

}  // namespace ballast
