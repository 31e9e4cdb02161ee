#include "array_printer.hpp"

#include <optional>
#include <string>
#include <vector>

#include "element_text.hpp"
#include "elements.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kPrintWhole = 1000;  // elements
constexpr std::uint64_t kEdge = 3;
constexpr std::uint64_t kWindow = 16384;

// Walks over the indices of an array that are shown, the last dimension fastest.
class Odometer {
 public:
  Odometer(const Shape& shape, bool cut) : shape_(shape), cut_(cut), index_(shape.rank()) {}

  // The element's index in contiguous order.
  std::uint64_t position() const {
    std::uint64_t position = 0;
    for (std::size_t d = 0; d < index_.size(); ++d) position = position * shape_[d] + index_[d];
    return position;
  }

  struct Step {
    std::size_t dimension;  // the dimension that moved on; the dimensions after it began anew
    bool skipped;           // true if elements that are not shown were passed over
  };

  // Empty after the last index.
  std::optional<Step> next() {
    for (std::size_t d = index_.size(); d-- > 0;) {
      const bool skip = cut_ && shape_[d] > 2 * kEdge && index_[d] + 1 == kEdge;
      index_[d] = skip ? shape_[d] - kEdge : index_[d] + 1;
      if (index_[d] < shape_[d]) return Step{d, skip};
      index_[d] = 0;
    }
    return std::nullopt;
  }

 private:
  const Shape& shape_;
  bool cut_;
  std::vector<std::uint64_t> index_;
};

class ArrayPrinter {
 public:
  ArrayPrinter(Output& out, const Tensor& tensor, const ArrayPrintOptions& options)
      : out_(out),
        width_(options.width),
        cut_(!options.full && tensor.numel() > kPrintWhole),
        elements_(tensor, cut_ ? 2 * kEdge : kWindow),
        format_(tensor.dtype(), tensor.rank() == 0) {}

  void print() {
    if (elements_.count() == 0) return out_.line("[]");
    look_at_all();
    print_all();
    end_line();
  }

 private:
  std::size_t rank() const { return elements_.shape().rank(); }

  void look_at_all() {
    Odometer at(elements_.shape(), cut_);
    do {
      format_.look_at(elements_[at.position()]);
    } while (at.next());
  }

  void print_all() {
    Odometer at(elements_.shape(), cut_);
    line_.append(rank(), '[');
    for (;;) {
      word(format_.text(elements_[at.position()]));
      const auto step = at.next();
      if (!step) break;
      go_on_after(*step);
    }
    line_.append(rank(), ']');
  }

  void go_on_after(const Odometer::Step& step) {
    const std::size_t inner = rank() - 1 - step.dimension;  // how many dimensions end and begin here
    if (inner == 0) {
      if (step.skipped) word("...");
      return;
    }
    line_.append(inner, ']');
    break_line(step.dimension);
    if (step.skipped) {
      line_ += "...";
      break_line(step.dimension);
    }
    line_.append(inner, '[');
  }

  // Writes an element of a row; it begins a new line if this line is full.
  void word(const std::string& text) {
    const bool begins_row = line_.empty() || line_.back() == '[';
    const std::size_t brackets = rank();  // closing brackets that may have to follow
    if (!begins_row && line_.size() + 1 + text.size() + brackets > width_) {
      end_line();
      line_.append(rank(), ' ');
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
