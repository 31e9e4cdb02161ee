// InfoText: labels and their texts, a line each, as `info` shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ballast::cli {

struct Session;

class InfoText {
 public:
  explicit InfoText(Session& session) : session_(session) {}

  void line(std::string_view label, std::string_view text) { facts(label, {std::string(text)}); }

  // Several sentences under one label. On a terminal they go on in the next line: half a fact is none. Only a word that
  // is wider than the terminal, such as a path, is cut in its middle, unless -v asks for all of it.
  void facts(std::string_view label, const std::vector<std::string>& items);

  // Several lines "key = value" under one label. On a terminal, unless -v asks for all of it, a key loses its middle
  // and then a text its end; a number that has no room beside its key stands in the next line, whole.
  void pairs(std::string_view label, const std::vector<std::pair<std::string, std::string>>& items);

 private:
  std::vector<std::string> pair_lines(const std::string& key, const std::string& value) const;
  std::size_t room() const;
  std::string spelled(const std::string& text) const;
  void write(std::string_view label, std::string_view text);

  Session& session_;
};

}  // namespace ballast::cli
