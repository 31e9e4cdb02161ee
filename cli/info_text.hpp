// InfoText: labels and their texts, a line each, as `info` shows them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "session.hpp"
#include "wrap.hpp"

namespace ballast::cli {

class InfoText {
 public:
  explicit InfoText(Session& session) : session_(session) {}

  void line(std::string_view label, std::string_view text) { facts(label, {std::string(text)}); }
  // Writes several lines under one label. On a terminal, a long list is cut unless -v asks for all of it.
  void list(std::string_view label, const std::vector<std::string>& items) {
    for (const std::string& item : items) {
      write(label, session_.shows_all() ? item : abbreviate(spelled(item), room(), session_.screen.ellipsis()));
      label = "";
    }
  }
  // The same for sentences, which go on in the next line: half a fact is none. Only a word that is wider than the
  // terminal, such as a path, is cut in its middle.
  void facts(std::string_view label, const std::vector<std::string>& items) {
    if (!session_.screen.interactive) return list(label, items);
    for (const std::string& item : items) {
      for (const std::string& part : wrapped(spelled(item), room())) {
        write(label, session_.shows_all() ? part : elided(part, room(), session_.screen.ellipsis()));
        label = "";
      }
    }
  }

 private:
  static constexpr std::size_t kLabelWidth = 12, kLeastRoom = 20;

  std::size_t room() const {
    const std::size_t width = session_.screen.width;
    return std::max(width - std::min(width, kLabelWidth), kLeastRoom);
  }
  std::string spelled(const std::string& text) const { return session_.screen.utf8 ? text : prose_in_ascii(text); }
  void write(std::string_view label, std::string_view text) {
    session_.out.line(
        fmt::format("{}{}", session_.screen.paint(Color::bold, fmt::format("{:<{}}", label, kLabelWidth)), text));
  }

  Session& session_;
};

}  // namespace ballast::cli
