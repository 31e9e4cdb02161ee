// Labels of a tree that have a number, and lists of such numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast {

// A label whose first part is a number, or ends in one after an underscore: "7", "layer_7".
struct NumberedLabel {
  std::string_view stem, rest;  // what stands before the number, and after it
  std::uint64_t number = 0;

  bool differs_only_in_number(const NumberedLabel& other) const { return stem == other.stem && rest == other.rest; }
};

// Empty if there is no number, or if it would not be written in the same way again.
std::optional<NumberedLabel> read_number(std::string_view label);

// Ascending numbers as a glob has them: "{0..31}", "{0..2,5}".
class NumberList {
 public:
  void add(std::uint64_t number) {
    if (!text_.empty() && number == last_ + 1) return void(last_ = number);
    end_run();
    text_ += text_.empty() ? '{' : ',';
    text_ += std::to_string(number);
    first_ = last_ = number;
  }
  std::string text() const {
    NumberList whole = *this;
    whole.end_run();
    return whole.text_ + "}";
  }

 private:
  void end_run() {
    if (last_ > first_) text_ += ".." + std::to_string(last_);
  }

  std::string text_;  // up to the first number of the last run
  std::uint64_t first_ = 0, last_ = 0;
};

}  // namespace ballast
