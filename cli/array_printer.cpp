#include "array_printer.hpp"

#include <string>

#include "element_text.hpp"
#include "elements.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kPrintWhole = 1000;  // elements
constexpr std::uint64_t kEdge = 3;
constexpr std::uint64_t kWindow = 16384;

class ArrayPrinter {
 public:
  ArrayPrinter(Output& out, const Tensor& tensor, const ArrayPrintOptions& options)
      : out_(out),
        width_(options.width),
        cut_(!options.full && tensor.numel() > kPrintWhole),
        elements_(tensor, cut_ ? 2 * kEdge : kWindow),
        format_(tensor.dtype()) {}

  void print() {
    look(0, 0);
    print(0, 0);
    end_line();
  }

 private:
  std::size_t rank() const { return elements_.shape().rank(); }

  // Calls `show` with every index of the dimension that is shown, and `skip` once where some are left out.
  template <class Show, class Skip>
  void for_shown(std::size_t dimension, Show show, Skip skip) const {
    const std::uint64_t size = elements_.shape()[dimension];
    const bool cut = cut_ && size > 2 * kEdge;
    for (std::uint64_t i = 0; i < size; ++i) {
      if (cut && i == kEdge) {
        skip();
        i = size - kEdge;
      }
      show(i);
    }
  }

  // `base` is the row of this dimension, counted over all outer dimensions.
  void look(std::size_t dimension, std::uint64_t base) {
    if (dimension == rank()) return format_.look_at(elements_[base]);
    const std::uint64_t size = elements_.shape()[dimension];
    if (elements_.count() == 0) return;
    for_shown(
        dimension, [&](std::uint64_t i) { look(dimension + 1, base * size + i); }, [] {});
  }

  void print(std::size_t dimension, std::uint64_t base) {
    if (dimension == rank()) return word(format_.text(elements_[base]), 0);
    if (elements_.count() == 0) return append("[]");
    const std::uint64_t size = elements_.shape()[dimension];
    const bool innermost = dimension + 1 == rank();
    append("[");
    bool first = true;
    const auto separate = [&] {
      if (!first && !innermost) break_line(dimension);
      first = false;
    };
    for_shown(
        dimension,
        [&](std::uint64_t i) {
          separate();
          innermost ? word(format_.text(elements_[base * size + i]), rank()) : print(dimension + 1, base * size + i);
        },
        [&] {
          separate();
          innermost ? word("...", rank()) : append("...");
        });
    append("]");
  }

  void append(std::string_view text) { line_ += text; }

  // An element of a row: on a line of its own when this one is full. `indent` is where rows begin.
  void word(const std::string& text, std::size_t indent) {
    const bool begins_row = line_.empty() || line_.back() == '[';
    const std::size_t brackets = indent;  // that may have to follow
    if (!begins_row && line_.size() + 1 + text.size() + brackets > width_) {
      end_line();
      line_.append(indent, ' ');
    } else if (!begins_row) {
      line_ += ' ';
    }
    line_ += text;
  }

  // One empty line for every dimension between these rows and the innermost one.
  void break_line(std::size_t dimension) {
    end_line();
    for (std::size_t i = dimension + 2; i < rank(); ++i) out_.write('\n');
    line_.append(dimension + 1, ' ');
  }

  void end_line() {
    while (!line_.empty() && line_.back() == ' ') line_.pop_back();
    out_.line(line_);
    line_.clear();
  }

  Output& out_;
  std::size_t width_;
  bool cut_;
  Elements elements_;
  ElementText format_;
  std::string line_;
};

}  // namespace

void print_array(Output& out, const Tensor& tensor, const ArrayPrintOptions& options) {
  ArrayPrinter(out, tensor, options).print();
}

}  // namespace ballast::cli
