#include "table.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>
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

// The columns that may be left out, the first one first.
std::vector<std::size_t> Table::droppable(const std::vector<std::size_t>& widths) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].drop != 0 && widths[i] != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return columns_[i].drop; });
  return order;
}

std::size_t Table::names_told_apart(std::size_t width) const {
  std::unordered_set<std::string> names;
  for (const Row& row : rows_) {
    if (!row.header && row.cells.size() > names_) names.insert(elided(row.cells[names_], width, terminal_.ellipsis()));
  }
  return names.size();
}

void Table::fit(std::vector<std::size_t>& widths) const {
  const std::size_t full = widths[names_];
  // A screen that is narrower than the column itself gets what fits.
  const std::size_t screen = terminal_.width - std::min(terminal_.width, indent_.size());
  const std::size_t narrowest = std::min({columns_[names_].narrowest, screen, full});
  const std::vector<std::size_t> order = droppable(widths);
  std::vector<std::size_t> best;
  std::size_t most_names = 0;
  for (std::size_t left_out = 0; left_out <= order.size(); ++left_out) {
    if (left_out > 0) widths[order[left_out - 1]] = kLeftOut;
    widths[names_] = full;
    const std::size_t others = room_of(widths, indent_.size()) - full;
    const std::size_t room = terminal_.width > others ? terminal_.width - others : 0;
    const bool is_last = left_out == order.size();
    if (room < narrowest && !is_last) continue;
    widths[names_] = std::min(full, std::max(room, kLeastNames));
    if (best.empty() && (is_last || room >= full)) return;
    const std::size_t names = names_told_apart(widths[names_]);
    if (names > most_names) {
      best = widths;
      most_names = names;
    }
    if (names == names_told_apart(full)) break;
  }
  widths = best;
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

void Table::say_left_out(const std::vector<std::size_t>& widths) {
  std::string titles;
  const auto header = std::ranges::find_if(rows_, &Row::header);
  for (const std::size_t i : droppable(widths)) {
    if (widths[i] != kLeftOut) continue;
    const bool has_title = header != rows_.end() && i < header->cells.size();
    titles.append(titles.empty() ? "" : ", ").append(has_title ? header->cells[i] : columns_[i].title);
  }
  if (titles.empty() || terminal_.quiet) return;
  out_.line(terminal_.paint(Color::dim, labelled(terminal_, indent_ + "left out: ", titles + "; -v shows all")));
}

void Table::finish() {
  const auto column_widths = widths();
  for (const Row& row : rows_) write_aligned(row, column_widths);
  say_left_out(column_widths);
  rows_.clear();
}

}  // namespace ballast::cli
