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

constexpr std::size_t kTreeGap = 2, kTreeIndent = 2;
constexpr std::size_t kUsualName = 40, kNarrowestBar = 5, kWidestBar = 20;
constexpr std::size_t kMostIndent = 40;  // names may have ten thousand parts
constexpr std::array<std::string_view, 8> kEighthsOfColumn = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

enum TreeColumn : std::size_t { kName, kPrefixes, kTensors, kParameters, kBytes, kShare, kBar, kShared, kColumns };
using TreeCells = std::array<std::string, kColumns>;
const std::vector<Table::Column> kLayout = {{},
                                            {.right = true},
                                            {.right = true, .drop = 2},
                                            {.right = true, .drop = 1},
                                            {.right = true, .color = Color::green},
                                            {.right = true},
                                            {.color = Color::cyan},
                                            {.color = Color::dim, .drop = 3, .title = "shared bytes"}};

// Whether a line has the numbers of the one before it, as most tensors of a model with many experts have.
bool has_same_numbers(const TreeNode& a, const TreeNode& b) {
  return a.bytes == b.bytes && a.parameters == b.parameters && a.tensors == b.tensors && a.folded == b.folded &&
         a.shared_bytes == b.shared_bytes;
}

TreeNode numbers_of(const TreeNode& node) {
  return {.folded = node.folded,
          .tensors = node.tensors,
          .parameters = node.parameters,
          .bytes = node.bytes,
          .shared_bytes = node.shared_bytes};
}

void set_name(std::string& cell, const TreeNode& node) {
  cell.assign(std::min(kTreeIndent * node.depth, kMostIndent), ' ');
  append_escaped(cell, node.name().empty() ? "\"\"" : node.name());
}

// Fills cells, but for the bar.
void set_cells(TreeCells& cells, const Terminal& screen, const TreeNode& node, std::uint64_t all_bytes,
               bool has_blocks) {
  const double percent = all_bytes == 0 ? 0 : static_cast<double>(node.bytes) * 100 / static_cast<double>(all_bytes);
  set_name(cells[kName], node);
  cells[kPrefixes].clear();
  if (node.folded > 1 || !screen.interactive) cells[kPrefixes] = (has_blocks ? "×" : "x") + std::to_string(node.folded);
  cells[kTensors] = screen.count(node.tensors);
  cells[kParameters] = screen.count(node.parameters);
  cells[kBytes] = screen.bytes(node.bytes);
  cells[kShare] = screen.interactive ? fmt::format("{:.1f}%", percent) : fmt::to_string(percent) + '%';
  cells[kShared].clear();
  if (node.shared_bytes > 0) cells[kShared] = fmt::format("+ {} shared", screen.bytes(node.shared_bytes));
}

std::array<std::size_t, kColumns> widths_of(const std::vector<TreeCells>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const TreeCells& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  return widths;
}

// How many columns of the screen the bars get: none, if they would leave too few for names.
std::size_t room_for_bars(const Terminal& screen, const std::vector<TreeCells>& rows) {
  const auto widths = widths_of(rows);
  std::size_t taken = kTreeGap + std::min(widths[kName], kUsualName);
  for (const std::size_t i : {kPrefixes, kTensors, kParameters, kBytes, kShare, kShared})
    taken += widths[i] == 0 ? 0 : widths[i] + kTreeGap;
  const std::size_t room = screen.width - std::min(screen.width, taken);
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

namespace {

// A line is written as soon as it is known: there may be a hundred thousand.
class PipedTree {
 public:
  explicit PipedTree(Session& session) : screen_(session.screen), table_(session.out, session.screen, kLayout) {}

  void write(const TreeNode& node, std::uint64_t all_bytes) {
    if (is_first_ || !has_same_numbers(last_, node)) {
      set_cells(cells_, screen_, node, all_bytes, false);
      cells_[kBar] = bar(share_of(node.bytes, all_bytes), kWidestBar, false);
      last_ = numbers_of(node);
      is_first_ = false;
    } else {
      set_name(cells_[kName], node);
    }
    table_.row(std::span(cells_).first(cells_[kShared].empty() ? kShared : kColumns));
  }

 private:
  const Terminal& screen_;
  Table table_;
  TreeCells cells_;  // reused for every line
  TreeNode last_;    // only its numbers
  bool is_first_ = true;
};

void write_fitted(Session& session, const Tree& tree) {
  const Terminal& screen = session.screen;
  const bool has_blocks = screen.utf8;
  Table table(session.out, screen, kLayout);
  std::vector<TreeCells> rows = {{"name", "", "tensors", "params", "bytes", "share"}};
  for (const TreeNode& node : tree.nodes) set_cells(rows.emplace_back(), screen, node, tree.totals.bytes, has_blocks);
  const std::size_t bar_columns = room_for_bars(screen, rows);
  table.header(rows[0]);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    TreeCells& cells = rows[i + 1];
    cells[kBar] = bar(share_of(tree.nodes[i].bytes, tree.totals.bytes), bar_columns, has_blocks);
    table.row(std::span(cells).first(cells[kShared].empty() ? kShared : kColumns));
  }
  table.finish();
}

}  // namespace

void write_tree(Session& session, const Checkpoint& checkpoint, std::span<const std::size_t> numbers,
                const TreeOptions& options) {
  if (session.screen.interactive) return write_fitted(session, tree_of(checkpoint, numbers, options));
  PipedTree piped(session);
  visit_tree(checkpoint, numbers, options,
             [&](const TreeNode& node, const TensorTotals& all) { piped.write(node, all.bytes); });
}

}  // namespace ballast::cli
