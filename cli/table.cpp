#include "table.hpp"

#include <algorithm>
#include <utility>

namespace ballast::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeftOut = static_cast<std::size_t>(-1);  // instead of a width

std::size_t room_of(const std::vector<std::size_t>& widths, std::size_t indent) {
  std::size_t columns = indent, shown = 0;
  for (const std::size_t width : widths) {
    if (width == kLeftOut || width == 0) continue;
    columns += width + (shown++ == 0 ? 0 : kGap);
  }
  return columns;
}

}  // namespace

Table::Table(Output& out, const Terminal& terminal, std::vector<Column> columns, std::string indent)
    : out_(out), terminal_(terminal), columns_(std::move(columns)), indent_(std::move(indent)) {}

void Table::add(std::span<const std::string> cells, bool is_header) {
  if (!terminal_.interactive) return write_tabbed(cells);
  rows_.push_back({{cells.begin(), cells.end()}, is_header});
  if (terminal_.utf8) return;
  for (std::string& cell : rows_.back().cells) cell = in_ascii(cell);
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
    for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], columns_of(row.cells[i]));
  }
  if (!widths.empty() && !terminal_.whole) fit(widths);
  return widths;
}

void Table::fit(std::vector<std::size_t>& widths) const {
  // A screen that is narrower than the column itself gets what fits.
  const std::size_t full = widths[0], narrowest = std::min(columns_[0].narrowest,
                                                           terminal_.width - std::min(terminal_.width, indent_.size()));
  for (;;) {
    const std::size_t others = room_of(widths, indent_.size()) - std::min(widths[0], full);
    const std::size_t room = terminal_.width > others ? terminal_.width - others : 0;
    widths[0] = std::min(full, std::max(room, std::min(full, narrowest)));
    if (widths[0] <= room) return;
    std::size_t least = 0;
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      const bool is_shown = widths[i] != kLeftOut && widths[i] != 0;
      if (is_shown && columns_[i].drop > columns_[least].drop) least = i;
    }
    if (least == 0) return;
    widths[least] = kLeftOut;
  }
}

void Table::write_aligned(const Row& row, const std::vector<std::size_t>& widths) {
  std::string line = indent_;
  std::size_t pending = 0;  // spaces that are written once a cell follows, so that no line ends in spaces
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    if (widths[i] == kLeftOut || widths[i] == 0) continue;
    const bool is_cut = i == 0 && !terminal_.whole;
    const std::string cell = is_cut ? elided(row.cells[i], widths[i], terminal_.ellipsis()) : row.cells[i];
    const std::size_t columns = columns_of(cell);
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
