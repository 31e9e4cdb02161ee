#include "table.hpp"

#include <algorithm>
#include <utility>

namespace ballast::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowestFirst = 40;

// How many columns a cell takes on the screen: colour sequences take none.
std::size_t shown_columns(const std::string& cell) {
  std::string plain;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] == '\x1b') {
      i = std::min(cell.find('m', i), cell.size());
    } else {
      plain += cell[i];
    }
  }
  return columns_of(plain);
}

}  // namespace

Table::Table(Output& out, const Terminal& terminal, std::vector<Column> columns, std::string indent)
    : out_(out), terminal_(terminal), columns_(std::move(columns)), indent_(std::move(indent)) {}

void Table::add(std::span<const std::string> cells, bool is_header) {
  if (!terminal_.interactive) return write_tabbed(cells);
  rows_.push_back({{cells.begin(), cells.end()}, is_header});
}

void Table::write_tabbed(std::span<const std::string> cells) {
  out_.write(indent_);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out_.write('\t');
    if (terminal_.colored)
      out_.write(terminal_.paint(columns_[i].color, cells[i]));
    else
      out_.write(cells[i]);
  }
  out_.write('\n');
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(columns_.size());
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], shown_columns(row.cells[i]));
  }
  if (widths.empty()) return widths;
  // One very long name must not push every other row off the screen: only its own row becomes too long.
  std::size_t others = indent_.size();
  for (std::size_t i = 1; i < widths.size(); ++i) others += widths[i] + kGap;
  const std::size_t room = terminal_.width > others ? terminal_.width - others : 0;
  widths[0] = std::min(widths[0], std::max(room, kNarrowestFirst));
  return widths;
}

void Table::write_aligned(const Row& row, const std::vector<std::size_t>& widths) {
  std::string line = indent_;
  std::size_t pending = 0;  // spaces that are written once a cell follows, so that no line ends in spaces
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const std::string& cell = row.cells[i];
    const std::size_t columns = shown_columns(cell);
    const std::size_t padding = widths[i] > columns ? widths[i] - columns : 0;
    if (i > 0) pending += kGap;
    if (columns_[i].right) pending += padding;
    if (!cell.empty()) {
      line.append(pending, ' ');
      pending = 0;
      line += terminal_.paint(row.header ? Color::bold : columns_[i].color, cell);
    }
    if (!columns_[i].right) pending += padding;
  }
  out_.line(line);
}

void Table::finish() {
  const auto column_widths = widths();
  for (const Row& row : rows_) write_aligned(row, column_widths);
  rows_.clear();
}

}  // namespace ballast::cli
