// ConfigText: a config.json of which single values are changed, and every other byte stays as it was.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/json.hpp>

namespace ballast {

class ConfigText {
 public:
  // Leaves a byte order mark away. Errc::malformed if the text is not a JSON object, as Python reads it, or is nested
  // too deeply.
  explicit ConfigText(std::string text);

  const std::string& text() const noexcept { return text_; }

  // Puts a string in the place of the value, wherever the value is the string `from`; returns how often. The key may be
  // in the object itself, or in a configuration in it ("text_config") or in one of its own.
  std::size_t replace(std::string_view key, std::string_view from, std::string_view to);

  // The string that the object itself has under the key.
  std::optional<std::string> find(std::string_view key) const;

  // Takes the key and its value away, wherever they are; returns how often.
  std::size_t remove(std::string_view key);

  // Puts the key behind the others of the object itself, in lines like theirs. The object must not have the key.
  void add(std::string_view key, const Json& value);

 private:
  struct Member {
    std::string key;
    std::optional<std::string> string;       // the value, if it is one
    std::size_t depth;                       // 0 for the object itself
    std::size_t begin, value_begin, end;     // of the key, of the value, and behind the value
    std::size_t previous_end = 0, next = 0;  // of the neighbours in the same object; 0 if there is none
  };
  void read();

  std::string text_;
  std::vector<Member> members_;
  std::size_t begin_ = 0;  // of what is in the object itself
};

}  // namespace ballast
