#include "page.hpp"

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "pack.hpp"
#include "page_data.hpp"

namespace ballast::cli {
namespace {

// The title is the only text of the user's that stands in the markup.
std::string escaped_for_html(std::string_view text) {
  std::string escaped;
  for (const char c : escape_for_terminal(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

// What stands between the first of these and the next of those.
std::string_view between(std::string_view page, std::string_view first, std::string_view next) {
  const std::size_t begin = page.find(first) + first.size();
  return page.substr(begin, page.find(next, begin) - begin);
}

// The template with the parts in the place of its marks, <!--policy--> and so on. What is put in is not looked at
// again.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string_view>>& parts) {
  std::string text;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t mark = page.find("<!--", at), end = page.find("-->", mark);
    text += page.substr(at, mark - at);
    if (mark == page.npos || end == page.npos) break;
    const std::string_view name = page.substr(mark + 4, end - mark - 4);
    for (const auto& [key, value] : parts) {
      if (key == name) text += value;
    }
    at = end + 3;
  }
  return text;
}

}  // namespace

std::string content_security_policy(PageKind kind) {
  const std::string_view page = page_data();
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src {}; "
      "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      sha256_base64(between(page, "<script>", "</script>")), sha256_base64(between(page, "<style>", "</style>")),
      kind == PageKind::served ? "'self'" : "'none'");
}

std::string served_page() { return filled(page_data(), {{"title", "Ballast"}}); }

std::string report_page(const std::vector<std::pair<std::string, std::string>>& documents, std::string_view title) {
  const std::string policy = fmt::format(R"(<meta http-equiv="Content-Security-Policy" content="{}">)",
                                         content_security_policy(PageKind::report));
  std::string blocks;
  for (const auto& [name, document] : documents)
    blocks += fmt::format("<script type=\"text/plain\" id=\"document-{}\">{}</script>\n", name, packed(document));
  const std::string escaped = escaped_for_html(title);
  return filled(page_data(), {{"policy", policy}, {"title", escaped}, {"documents", blocks}});
}

}  // namespace ballast::cli
