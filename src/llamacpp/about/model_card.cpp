#include "llamacpp/about/model_card.hpp"

#include <string>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "core/yaml.hpp"

namespace ballast::llamacpp {
namespace {

// The longest ones list the results of hundreds of benchmarks.
constexpr std::size_t kLongestCard = 4 << 20;

// Takes the next line off the text. Lines end as Python's splitlines() sees it.
std::string_view take_card_line(std::string_view& text) {
  constexpr std::string_view kEnds[] = {"\r\n", "\n",   "\r",     "\v",     "\f",    "\x1c",
                                        "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte > 0x1e && byte != 0xc2 && byte != 0xe2) continue;
    for (const std::string_view end : kEnds) {
      if (!text.substr(i).starts_with(end)) continue;
      const std::string_view line = text.substr(0, i);
      text.remove_prefix(i + end.size());
      return line;
    }
  }
  const std::string_view line = text;
  text = {};
  return line;
}

void replace_everywhere(std::string& text, std::string_view what, std::string_view with) {
  std::string replaced;
  std::size_t from = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, from)) {
    replaced.append(text, from, at - from).append(with);
    from = at + what.size();
  }
  text = replaced.append(text, from);
}

}  // namespace

Json parse_model_card(std::string_view text) {
  Json nothing{Json::Members()};
  if (valid_utf8_prefix(text) != text.size()) throw Error(Errc::malformed, "the text is not UTF-8");
  if (take_card_line(text) != "---") return nothing;
  std::string yaml;
  while (!text.empty()) {
    const std::string_view line = take_card_line(text);
    if (line == "---") break;
    yaml.append(line).append("\n");
    if (yaml.size() > kLongestCard) throw Error(Errc::limit, "its data are longer than any real ones");
  }
  // Norwegian is not false, and tabs are common.
  replace_everywhere(yaml, "- no\n", "- \"no\"\n");
  replace_everywhere(yaml, "\t", "  ");
  Json card = parse_yaml(yaml);
  return card.is_object() ? card : nothing;
}

Json read_model_card(const ModelFolder& folder, std::vector<Note>& notes) {
  try {
    const auto text = folder.text("README.md");
    if (text) return parse_model_card(*text);
  } catch (const Error& error) {
    notes.push_back({folder.path("README.md"),
                     fmt::format("the data at the top of the model card cannot be read: {}", error.message()),
                     Note::Kind::oddity,
                     {}});
  }
  return Json{Json::Members()};
}

}  // namespace ballast::llamacpp
