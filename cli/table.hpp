// Table: rows of cells. A terminal gets aligned columns that fit its width; a pipe gets the cells of each row at once,
// with one tab between them.
//
// If the columns do not fit, the text in a column that wraps goes on in the next line; if too little room is left
// beside the other columns, what does not fit stands below its row. Then the column with names is cut in the middle,
// down to its `narrowest`; then columns are left out, the one with the greatest `drop` first, and a line below the
// table says which. More columns than that are left out only if this tells more names apart: a row whose name may be
// that of another row says nothing. A cell of any other column is never cut: half a number is a wrong number.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output.hpp"
#include "terminal.hpp"

namespace ballast::cli {

class Table {
 public:
  struct Column {
    bool right = false;
    Color color = Color::plain;
    unsigned drop = 0;          // 0: the column always stays
    std::size_t narrowest = 0;  // of the column with names, how far it is cut; if none says it, the first one, to 24
    bool wraps = false;         // sentences; only the last column can wrap
    std::string_view title{};   // what a column that may be left out is called, if the table has no header
  };

  Table(Output& out, const Terminal& terminal, std::vector<Column> columns, std::string indent = "");

  // A row has at most as many cells as there are columns. Cells are not escaped.
  void row(std::span<const std::string> cells) { add(cells, false); }
  void row(std::initializer_list<std::string> cells) { add(cells, false); }
  void header(std::span<const std::string> cells) { add(cells, true); }
  void header(std::initializer_list<std::string> cells) { add(cells, true); }

  // Writes the rows that have not been written yet.
  void finish();

 private:
  struct Row {
    std::vector<std::string> cells;
    bool header;
  };

  void add(std::span<const std::string> cells, bool is_header);
  void write_tabbed(std::span<const std::string> cells);
  void write_aligned(const Row& row, const std::vector<std::size_t>& widths);
  void write_text(const std::string& line, const std::string& gap, const Row& row, std::size_t width);
  std::vector<std::size_t> widths() const;
  std::vector<std::size_t> droppable(const std::vector<std::size_t>& widths) const;
  std::size_t names_told_apart(std::size_t width) const;
  void fit(std::vector<std::size_t>& widths) const;
  void fit_text(std::vector<std::size_t>& widths) const;
  void say_left_out(const std::vector<std::size_t>& widths);

  Output& out_;
  const Terminal& terminal_;
  std::vector<Column> columns_;
  std::size_t names_ = 0;  // the column that is cut
  std::string indent_;
  std::vector<Row> rows_;
};

}  // namespace ballast::cli
