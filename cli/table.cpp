#include "table.hpp"

#include <algorithm>
#include <utility>

#include "wrap.hpp"

namespace ballast::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeftOut = static_cast<std::size_t>(-1);  // instead of a width
constexpr std::size_t kNarrowestNames = 24, kLeastNames = 12, kNarrowestText = 28;
constexpr std::string_view kBelow = "    ";  // before a text that stands below its row

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
    : out_(out), terminal_(terminal), columns_(std::move(columns)), indent_(std::move(indent)) {
  const auto names = std::ranges::find_if(columns_, [](const Column& column) { return column.narrowest != 0; });
  if (names != columns_.end())
    names_ = static_cast<std::size_t>(names - columns_.begin());
  else
    columns_[0].narrowest = kNarrowestNames;
}

void Table::add(std::span<const std::string> cells, bool is_header) {
  if (!terminal_.interactive) return write_tabbed(cells);
  rows_.push_back({{cells.begin(), cells.end()}, is_header});
  if (terminal_.utf8) return;
  std::vector<std::string>& shown = rows_.back().cells;
  for (std::size_t i = 0; i < shown.size(); ++i)
    shown[i] = columns_[i].wraps ? prose_in_ascii(shown[i]) : in_ascii(shown[i]);
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
  if (columns_.back().wraps) fit_text(widths);
  if (!terminal_.whole) fit(widths);
  return widths;
}

void Table::fit_text(std::vector<std::size_t>& widths) const {
  const std::size_t all = room_of(widths, indent_.size());
  if (all <= terminal_.width) return;
  const std::size_t others = all - widths.back();
  const bool has_room = terminal_.width >= others + kNarrowestText;
  widths.back() = has_room ? terminal_.width - others : kLeftOut;
}

void Table::fit(std::vector<std::size_t>& widths) const {
  // A screen that is narrower than the column itself gets what fits.
  const std::size_t full = widths[names_],
                    narrowest = std::min(columns_[names_].narrowest,
                                         terminal_.width - std::min(terminal_.width, indent_.size()));
  for (;;) {
    const std::size_t others = room_of(widths, indent_.size()) - std::min(widths[names_], full);
    const std::size_t room = terminal_.width > others ? terminal_.width - others : 0;
    widths[names_] = std::min(full, std::max(room, std::min(full, narrowest)));
    if (widths[names_] <= room) return;
    std::size_t least = names_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool is_shown = widths[i] != kLeftOut && widths[i] != 0;
      if (is_shown && columns_[i].drop > columns_[least].drop) least = i;
    }
    if (least == names_) {  // nothing more can be left out
      widths[names_] = std::min(full, std::max(room, kLeastNames));
      return;
    }
    widths[least] = kLeftOut;
  }
}

void Table::write_aligned(const Row& row, const std::vector<std::size_t>& widths) {
  std::string line = indent_;
  std::size_t pending = 0;  // spaces that are written once a cell follows, so that no line ends in spaces
  const std::size_t aligned = columns_.back().wraps ? columns_.size() - 1 : columns_.size();
  for (std::size_t i = 0; i < std::min(row.cells.size(), aligned); ++i) {
    if (widths[i] == kLeftOut || widths[i] == 0) continue;
    const bool is_cut = i == names_ && !terminal_.whole;
    const std::string cell = is_cut ? elided(row.cells[i], widths[i], terminal_.ellipsis()) : row.cells[i];
    const std::size_t columns = columns_of(cell);
    const std::size_t padding = widths[i] > columns ? widths[i] - columns : 0;
    if (line.size() > indent_.size() || pending > 0) pending += kGap;
    if (columns_[i].right) pending += padding;
    if (cell.find_first_not_of(' ') == cell.npos) {
      pending += columns;
    } else {
      line.append(pending, ' ');
      pending = 0;
      line += terminal_.paint(row.header ? Color::bold : columns_[i].color, cell);
    }
    if (!columns_[i].right) pending += padding;
  }
  if (row.cells.size() <= aligned || row.cells.back().empty()) return out_.line(line);
  write_text(line, std::string(pending + kGap, ' '), row, widths.back());
}

void Table::write_text(const std::string& line, const std::string& gap, const Row& row, std::size_t width) {
  const std::string& text = row.cells.back();
  const Color color = row.header ? Color::bold : columns_.back().color;
  if (row.header && width == kLeftOut) return out_.line(line);
  const bool fits = columns_of(line) + gap.size() + columns_of(text) <= terminal_.width;
  const bool is_beside = fits || (width != kLeftOut && widest_word(text) <= width);
  if (fits) width = columns_of(text);
  std::string before = is_beside ? line + gap : indent_ + std::string(kBelow);
  const std::string margin = is_beside ? std::string(columns_of(before), ' ') : before;
  if (!is_beside) {
    out_.line(line);
    width = terminal_.width - std::min(terminal_.width, margin.size());
  }
  for (const std::string& part : wrapped(text, width)) {
    out_.line(before + terminal_.paint(color, part));
    before = margin;
  }
}

void Table::finish() {
  const auto column_widths = widths();
  for (const Row& row : rows_) write_aligned(row, column_widths);
  rows_.clear();
}

}  // namespace ballast::cli
