// TokenizerJson: a tokenizer.json whose long values, the vocabulary and the merges, stay the text that they are.
//
// A document of them would take several times the memory of the text.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include <ballast/json.hpp>

#include "core/json_text.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// A list or an object in a text that was checked and that outlives it. Errc::limit if it is longer than any real one.
class JsonEntries {
 public:
  JsonEntries(const PaddedText& text, std::size_t begin, std::size_t end) : text_(&text), at_(begin), end_(end) {}

  bool is_object() const noexcept { return text_->view()[at_] == '{'; }
  std::size_t text_size() const noexcept { return end_ - at_; }
  std::uint64_t count() const;
  // In an object. A key that is not `in_text` is gone when the call returns.
  void each_member(const std::function<void(JsonText::String key, const Json& value)>& member) const;
  void each_item(const std::function<void(const Json& item)>& item) const;  // in a list

 private:
  const PaddedText* text_;
  std::size_t at_, end_;
};

class TokenizerJson {
 public:
  // Nothing if the folder has no such file. Errc::malformed with its name if it is no JSON object.
  static std::optional<TokenizerJson> read(const ModelFolder& folder);
  // A file that is a vocabulary and nothing else, such as vocab.json.
  static std::optional<TokenizerJson> read_vocabulary(const ModelFolder& folder, const std::string& file);

  // Everything. The long values are empty here, and of the kind that they have.
  const Json& root() const noexcept { return root_; }

  // Nothing if there is none, or if it is neither an object nor a list.
  std::optional<JsonEntries> vocabulary() const { return entries(vocabulary_); }
  std::optional<JsonEntries> merges() const { return entries(merges_); }

 private:
  // Where a value begins and ends in the text.
  struct Extent {
    std::size_t begin = 0, end = 0;
  };
  explicit TokenizerJson(PaddedText text) : text_(std::move(text)) {}
  std::optional<JsonEntries> entries(const Extent& extent) const {
    return extent.end == 0 ? std::nullopt : std::optional(JsonEntries(text_, extent.begin, extent.end));
  }
  void find_long_values();
  void find_in_model(JsonText& text);
  void take_long_value(JsonText& text, std::uint64_t depth, Extent& extent);
  std::string text_of_the_rest() const;

  PaddedText text_;
  Extent vocabulary_, merges_;
  Json root_;
};

}  // namespace ballast::llamacpp
