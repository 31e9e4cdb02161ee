#include "llamacpp/tokenizer/tokenizer_json.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/json_parse.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::uint64_t kMostEntries = 4 << 20;  // the greatest vocabulary of a published model has 300 000

JsonText reader_of(const PaddedText& text) { return {text, 0, kMaxJsonDepth, JsonText::Numbers::python}; }

// Calls entry() at each entry of the list or object at which the text stands; entry() takes it.
template <class Entry>
void each_in(JsonText& text, char open, char close, Entry entry) {
  text.expect(open, "before the first value");
  if (text.take(close)) return;
  std::uint64_t count = 0;
  do {
    if (++count > kMostEntries) throw Error(Errc::limit, fmt::format("more than {} tokens or merges", kMostEntries));
    entry();
  } while (text.take(','));
  text.expect(close, "or ',' after a value");
}

template <class Member>
void each_member_in(JsonText& text, Member member) {
  each_in(text, '{', '}', [&] {
    const JsonText::String key = text.string("a key");
    const std::string kept(key.in_text ? std::string_view() : key.value);
    text.expect(':', "after a key");
    member(JsonText::String{key.in_text ? key.value : kept, key.in_text});
  });
}

}  // namespace

std::uint64_t JsonEntries::count() const {
  std::uint64_t count = 0;
  if (is_object())
    each_member([&](JsonText::String, const Json&) { ++count; });
  else
    each_item([&](const Json&) { ++count; });
  return count;
}

void JsonEntries::each_member(const std::function<void(JsonText::String, const Json&)>& member) const {
  JsonText text = reader_of(*text_);
  text.return_to(text_->view().data() + at_);
  each_member_in(text, [&](JsonText::String key) { member(key, next_value(text)); });
}

void JsonEntries::each_item(const std::function<void(const Json&)>& item) const {
  JsonText text = reader_of(*text_);
  text.return_to(text_->view().data() + at_);
  each_in(text, '[', ']', [&] { item(next_value(text)); });
}

std::optional<TokenizerJson> TokenizerJson::read(const ModelFolder& folder) {
  const std::string file = "tokenizer.json";
  auto text = folder.padded(file);
  if (!text) return std::nullopt;
  TokenizerJson result(std::move(*text));
  try {
    result.find_long_values();
    result.root_ = Json::parse_python(result.text_of_the_rest());
  } catch (Error& error) {
    throw error.in(folder.path(file));
  }
  return result;
}

std::optional<TokenizerJson> TokenizerJson::read_vocabulary(const ModelFolder& folder, const std::string& file) {
  auto padded = folder.padded(file);
  if (!padded) return std::nullopt;
  TokenizerJson result(std::move(*padded));
  try {
    JsonText text = reader_of(result.text_);
    text.check_utf8();
    result.take_long_value(text, 1, result.vocabulary_);
    text.skip_space();
    if (!text.at_end()) text.fail("something follows the value");
  } catch (Error& error) {
    throw error.in(folder.path(file));
  }
  return result;
}

// Checks the whole text on the way, so that errors name the right byte.
void TokenizerJson::find_long_values() {
  JsonText text = reader_of(text_);
  text.check_utf8();
  text.skip_space();
  if (*text.mark() != '{') throw Error(Errc::malformed, "the file is not a JSON object");
  each_member_in(text, [&](JsonText::String key) {
    const bool is_model = key.value == "model";
    text.skip_space();
    is_model&&* text.mark() == '{' ? find_in_model(text) : text.skip_value(2);
  });
  text.skip_space();
  if (!text.at_end()) text.fail("something follows the value");
}

void TokenizerJson::find_in_model(JsonText& text) {
  each_member_in(text, [&](JsonText::String key) {
    if (key.value == "vocab") return take_long_value(text, 3, vocabulary_);
    if (key.value == "merges") return take_long_value(text, 3, merges_);
    text.skip_value(3);
  });
}

void TokenizerJson::take_long_value(JsonText& text, std::uint64_t depth, Extent& extent) {
  text.skip_space();
  const char* begin = text.mark();
  text.skip_value(depth);
  if (*begin != '{' && *begin != '[') return;
  const char* start = text_.view().data();
  extent = {static_cast<std::size_t>(begin - start), static_cast<std::size_t>(text.mark() - start)};
}

// What the extents leave is short. A key that is there twice is still there twice.
std::string TokenizerJson::text_of_the_rest() const {
  std::vector<Extent> cuts;
  for (const Extent& extent : {vocabulary_, merges_}) {
    if (extent.end != 0) cuts.push_back(extent);
  }
  std::ranges::sort(cuts, {}, &Extent::begin);
  const std::string_view all = text_.view();
  std::string rest;
  std::size_t done = 0;
  for (const Extent& cut : cuts) {
    rest.append(all.substr(done, cut.begin - done)).append(all[cut.begin] == '{' ? "{}" : "[]");
    done = cut.end;
  }
  return rest.append(all.substr(done));
}

}  // namespace ballast::llamacpp
