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

  void line(std::string_view label, std::string_view text) {
    session_.out.line(
        fmt::format("{}{}", session_.screen.paint(Color::bold, fmt::format("{:<{}}", label, kLabelWidth)), text));
  }
  // Writes several lines under one label. On a terminal, a long list is cut unless -v asks for all of it.
  void list(std::string_view label, const std::vector<std::string>& items) {
    for (const std::string& item : items) {
      const std::size_t room = session_.screen.width - std::min(session_.screen.width, kLabelWidth);
      line(label,
           session_.shows_all() ? item : abbreviate(item, std::max<std::size_t>(room, 20), session_.screen.ellipsis()));
      label = "";
    }
  }
  // The same for sentences, which go on in the next line: half a fact is none.
  void facts(std::string_view label, const std::vector<std::string>& items) {
    if (!session_.screen.interactive) return list(label, items);
    const std::size_t room = session_.screen.width - std::min(session_.screen.width, kLabelWidth);
    for (const std::string& item : items) {
      for (const std::string& part : wrapped(item, std::max<std::size_t>(room, 20))) {
        line(label, part);
        label = "";
      }
    }
  }

 private:
  static constexpr std::size_t kLabelWidth = 12;

  Session& session_;
};

}  // namespace ballast::cli
