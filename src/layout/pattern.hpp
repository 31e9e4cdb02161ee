// NamePattern: names with placeholders. "{x}.experts.{n}.weight" matches "layers.3.experts.12.weight".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace ballast {

class NamePattern {
 public:
  using Places = std::map<std::string, std::string, std::less<>>;  // the text of each placeholder in one name

  enum class Wildcards { no, yes };  // whether * and ? stand for anything, as in a shell

  // A placeholder is {word}: any text that is not empty, or digits if `numbers` has the word. Throws
  // Errc::invalid_argument.
  NamePattern(std::string_view text, const std::set<std::string, std::less<>>& numbers, Wildcards wildcards);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;
  NamePattern& operator=(NamePattern&&) noexcept;

  const std::string& text() const noexcept { return text_; }
  const std::vector<std::string>& places() const noexcept { return places_; }  // in order; a word may occur twice

  std::optional<Places> match(std::string_view name) const;
  std::string fill(const Places& places) const;  // every placeholder must be given

 private:
  std::string text_;
  std::vector<std::string> places_;
  std::vector<std::string> literals_;  // before, between and behind the placeholders
  std::unique_ptr<re2::RE2> expression_;
};

// The words in the braces of a pattern.
std::set<std::string, std::less<>> places_in(std::string_view pattern);

}  // namespace ballast
