#include "element_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

namespace ballast::cli {
namespace {

constexpr std::size_t kPrecision = 8;
constexpr double kLargestFixed = 1e8, kSmallestFixed = 1e-4, kWidestFixedRange = 1000;
constexpr double kLargestFixedScalar = 1e16;

// The parts of "12.25e-03": "12", "25", "e-03".
struct Digits {
  std::string left, right, exponent;
};

template <class Float, class... Precision>
std::string to_text(Float value, std::chars_format format, Precision... precision) {
  char text[512];  // the largest double has 309 digits before the point
  const auto result = std::to_chars(text, text + sizeof text, value, format, precision...);
  return {text, result.ptr};
}

Digits take_apart(const std::string& text) {
  const std::size_t exponent = std::min(text.find('e'), text.size());
  const std::size_t point = std::min(text.find('.'), exponent);
  Digits digits{text.substr(0, point), "", text.substr(exponent)};
  if (point < exponent) digits.right = text.substr(point + 1, exponent - point - 1);
  return digits;
}

template <class Float>
Digits digits_of(Float value, std::chars_format format) {
  Digits digits = take_apart(to_text(value, format));
  if (digits.right.size() <= kPrecision) return digits;
  digits = take_apart(to_text(value, format, static_cast<int>(kPrecision)));
  while (!digits.right.empty() && digits.right.back() == '0') digits.right.pop_back();
  return digits;
}

// The shortest decimal that is nearer to `value` than to any other float with this many significant bits. Whole numbers
// are returned unchanged.
float shortened(float value, int significant_bits) {
  if (significant_bits >= 24 || !std::isfinite(value) || value == std::trunc(value)) return value;
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(value, &exponent)) == 0.5f;
  // Below a power of two, floats are twice as close to each other.
  const float reach = std::ldexp(power_of_two ? 0.5f : 1.0f, exponent - significant_bits - 1);
  for (int digits = 0; digits < 8; ++digits) {
    const std::string text = to_text(value, std::chars_format::scientific, digits);
    float candidate = value;
    std::from_chars(text.data(), text.data() + text.size(), candidate);
    if (std::abs(candidate - value) < reach) return candidate;
  }
  return value;
}

int significant_bits(DType dtype) { return dtype == DType::bf16 ? 8 : dtype == DType::f16 ? 11 : 24; }

std::string word_for(double value, bool with_sign) {
  if (std::isnan(value)) return with_sign ? "+nan" : "nan";
  return value < 0 ? "-inf" : with_sign ? "+inf" : "inf";
}

// A large whole number that stands alone ends in zeros once further digits would not tell it from its neighbours.
template <class Float>
std::string fixed_text(Float value) {
  std::string text = to_text(value, std::chars_format::fixed);
  if (text.find('.') != std::string::npos) return text;
  const std::string shortest = to_text(value, std::chars_format::scientific);
  std::string digits;
  for (const char c : shortest.substr(0, shortest.find('e'))) {
    if (c != '.') digits += c;
  }
  digits.resize(text.size(), '0');
  return digits;
}

template <class Float>
std::string scalar_text(Float value) {
  if (!std::isfinite(value)) return word_for(static_cast<double>(value), false);
  const double magnitude = std::abs(static_cast<double>(value));
  const bool exponent = magnitude != 0 && (magnitude < kSmallestFixed || magnitude >= kLargestFixedScalar);
  if (exponent) return to_text(value, std::chars_format::scientific);
  const std::string text = fixed_text(value);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

// A whole number has no point, as Python writes the parts of a complex number.
template <class Float>
std::string part_text(Float value) {
  std::string text = scalar_text(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string whole_text(const Element& element) {
  if (const auto* b = std::get_if<bool>(&element)) return *b ? "True" : "False";
  if (const auto* i = std::get_if<std::int64_t>(&element)) return std::to_string(*i);
  return std::to_string(std::get<std::uint64_t>(element));
}

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

}  // namespace

bool ElementText::Reals::uses_exponents() const {
  if (largest == 0) return false;
  return largest >= kLargestFixed || smallest < kSmallestFixed || largest / smallest > kWidestFixedRange;
}

template <class Float>
void ElementText::Reals::look_at(Float value) {
  if (!std::isfinite(value)) {
    word = std::max(word, word_for(static_cast<double>(value), has_signs).size());
    return;
  }
  const double magnitude = std::abs(static_cast<double>(value));
  if (magnitude != 0) {
    largest = std::max(largest, magnitude);
    smallest = smallest == 0 ? magnitude : std::min(smallest, magnitude);
  }
  const std::size_t plus = has_signs && !std::signbit(value) ? 1 : 0;
  const Digits exponent = digits_of(value, std::chars_format::scientific);
  exponent_left = std::max(exponent_left, exponent.left.size() + plus);
  exponent_right = std::max(exponent_right, exponent.right.size());
  if (magnitude >= kLargestFixed) return;
  const Digits fixed = digits_of(value, std::chars_format::fixed);
  fixed_left = std::max(fixed_left, fixed.left.size() + plus);
  fixed_right = std::max(fixed_right, fixed.right.size());
}

template <class Float>
std::string ElementText::Reals::text(Float value) const {
  const bool exponents = uses_exponents();
  const std::size_t left = exponents ? exponent_left : fixed_left;
  const std::size_t right = exponents ? exponent_right : fixed_right;
  const std::size_t tail = exponents ? 4 : 0;  // "e+00"
  const std::size_t width = std::max(left + 1 + right + tail, word);
  if (!std::isfinite(value)) return fmt::format("{:>{}}", word_for(static_cast<double>(value), has_signs), width);

  // Beside longer numbers, a number gets more digits than are needed to tell it apart. If the digits were shortened on
  // purpose, further digits would be noise.
  Digits digits = digits_of(value, exponents ? std::chars_format::scientific : std::chars_format::fixed);
  if (exponents && !is_shortened)
    digits = take_apart(to_text(value, std::chars_format::scientific, static_cast<int>(right)));
  if (has_signs && !std::signbit(value)) digits.left.insert(0, "+");
  digits.right.resize(std::max(right, digits.right.size()), exponents ? '0' : ' ');
  return fmt::format("{:>{}}", digits.left + "." + digits.right + digits.exponent, width);
}

ElementText::ElementText(DType dtype, bool is_scalar)
    : is_scalar_(is_scalar), significant_bits_(significant_bits(dtype)) {
  real_.is_shortened = significant_bits_ < 24;
  imaginary_.has_signs = true;
  if (dtype == DType::boolean && !is_scalar) width_ = 5;  // "False", even if no element is false
}

void ElementText::look_at(const Element& element) {
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (is_complex<T>) {
          real_.look_at(value.real());
          imaginary_.look_at(value.imag());
        } else if constexpr (std::is_same_v<T, float>) {
          real_.look_at(shortened(value, significant_bits_));
        } else if constexpr (std::is_same_v<T, double>) {
          real_.look_at(value);
        } else {
          width_ = std::max(width_, whole_text(element).size());
        }
      },
      element);
}

std::string ElementText::text(const Element& element) const {
  return std::visit(
      [&]<class T>(const T& value) -> std::string {
        if constexpr (is_complex<T>) {
          if (is_scalar_) {
            const std::string imaginary = part_text(value.imag());
            const bool has_sign = imaginary.starts_with('-');
            if (value.real() == 0 && !std::signbit(value.real())) return imaginary + "j";
            return fmt::format("({}{}{}j)", part_text(value.real()), has_sign ? "" : "+", imaginary);
          }
          // The j follows the last digit, and the padding follows the j.
          std::string imaginary = imaginary_.text(value.imag());
          const std::size_t end = imaginary.find_last_not_of(' ') + 1;
          imaginary.insert(end, "j");
          return real_.text(value.real()) + imaginary;
        } else if constexpr (std::is_same_v<T, float>) {
          if (is_scalar_) return scalar_text(shortened(value, significant_bits_));
          return real_.text(shortened(value, significant_bits_));
        } else if constexpr (std::is_same_v<T, double>) {
          return is_scalar_ ? scalar_text(value) : real_.text(value);
        } else {
          return fmt::format("{:>{}}", whole_text(element), width_);
        }
      },
      element);
}

}  // namespace ballast::cli
