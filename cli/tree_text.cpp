#include "tree_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "table.hpp"

namespace ballast::cli {
namespace {

constexpr std::size_t kGap = 2, kIndent = 2;
constexpr std::size_t kNarrowestName = 16, kUsualName = 40, kNarrowestBar = 5, kWidestBar = 20;
constexpr std::size_t kMostIndent = 40;  // names may have ten thousand parts
constexpr std::array<std::string_view, 8> kEighthsOfColumn = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

enum TreeColumn : std::size_t { kName, kPrefixes, kTensors, kParameters, kBytes, kShare, kBar, kShared, kColumns };
using TreeCells = std::array<std::string, kColumns>;

// Whether the user's language is written in UTF-8, as the variables for it say.
bool has_utf8_locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string lower(value);
    std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return lower.ends_with("utf-8") || lower.ends_with("utf8") || lower.find("utf-8@") != std::string::npos;
  }
  return false;
}

std::string shown_name(const TreeNode& node) {
  std::string name(std::min(kIndent * node.depth, kMostIndent), ' ');
  if (node.name.empty()) return name + "\"\"";
  append_escaped(name, node.name);
  return name;
}

TreeCells cells_of(const Terminal& screen, const TreeNode& node, std::uint64_t all_bytes, bool has_blocks) {
  const double percent = 100 * share_of(node.bytes, all_bytes);
  TreeCells cells;
  cells[kName] = shown_name(node);
  if (node.folded > 1 || !screen.interactive)
    cells[kPrefixes] = fmt::format("{}{}", has_blocks ? "×" : "x", node.folded);
  cells[kTensors] = screen.count(node.tensors);
  cells[kParameters] = screen.count(node.parameters);
  cells[kBytes] = screen.bytes(node.bytes);
  cells[kShare] = screen.interactive ? fmt::format("{:.1f}%", percent) : fmt::format("{}%", percent);
  if (node.shared_bytes > 0) cells[kShared] = fmt::format("+ {} shared", screen.bytes(node.shared_bytes));
  return cells;
}

std::array<std::size_t, kColumns> widths_of(const std::vector<TreeCells>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const TreeCells& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  return widths;
}

// How many columns the bars get; none if that would leave too few for names.
std::size_t bar_columns(const Terminal& screen, const std::array<std::size_t, kColumns>& widths, std::size_t numbers) {
  if (!screen.interactive) return kWidestBar;
  const std::size_t taken = numbers + std::min(widths[kName], kUsualName) + kGap;
  const std::size_t room = screen.width > taken ? screen.width - taken : 0;
  return room < kNarrowestBar ? 0 : std::min(room, kWidestBar);
}

}  // namespace

double share_of(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

std::string bar(double share, std::size_t columns, bool has_blocks) {
  if (share <= 0 || columns == 0) return {};
  const double length = std::min(share, 1.0) * static_cast<double>(columns);
  if (!has_blocks) return std::string(std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(length))), '#');
  const auto eighths = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(length * 8)));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text.append(kEighthsOfColumn[eighths % 8]);
}

void write_tree(Session& session, const Tree& tree) {
  const Terminal& screen = session.screen;
  const bool has_blocks = screen.interactive && has_utf8_locale();
  std::vector<TreeCells> rows;
  if (screen.interactive) rows.push_back({"name", "", "tensors", "parameters", "bytes", "share"});
  for (const TreeNode& node : tree.nodes) rows.push_back(cells_of(screen, node, tree.totals.bytes, has_blocks));

  const auto widths = widths_of(rows);
  std::size_t numbers = 0;  // the columns beside names and bars
  for (const std::size_t i : {kPrefixes, kTensors, kParameters, kBytes, kShare, kShared})
    numbers += widths[i] == 0 ? 0 : widths[i] + kGap;
  const std::size_t bars = bar_columns(screen, widths, numbers);
  const std::size_t beside = numbers + (bars == 0 ? 0 : bars + kGap);
  const std::size_t room = std::max(screen.width > beside ? screen.width - beside : 0, kNarrowestName);

  Table table(session.out, screen,
              {{},
               {.right = true},
               {.right = true},
               {.right = true},
               {.right = true, .color = Color::green},
               {.right = true},
               {.color = Color::cyan},
               {.color = Color::dim}});
  const std::size_t titles = rows.size() - tree.nodes.size();
  if (titles > 0) table.header(rows[0]);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    TreeCells& cells = rows[titles + i];
    if (!session.shows_all()) cells[kName] = abbreviate(cells[kName], room);
    cells[kBar] = bar(share_of(tree.nodes[i].bytes, tree.totals.bytes), bars, has_blocks);
    table.row(std::span(cells).first(cells[kShared].empty() ? kShared : kColumns));
  }
  table.finish();
}

}  // namespace ballast::cli
