#include "layout/dimension_form.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "layout/reshape.hpp"

namespace ballast {
namespace {

Error wrong(std::string_view form, std::string_view what) {
  return Error(Errc::invalid_argument, fmt::format("the form {} {}", quote(form), what))
      .hint("a form has words and numbers, with parentheses around those that are one dimension: \"a (2 b) c\"");
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

void DimensionForm::add(std::string_view token, Dimension& dimension) const {
  Part part;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), part.size);
  const bool is_number = error == std::errc() && end == token.data() + token.size();
  if (!is_number) part = {std::string(token), 0};
  if (is_number ? part.size == 0 : !std::ranges::all_of(token, is_letter))
    throw wrong(text_, fmt::format("has {}, which is no word and no number of at least 1", quote(token)));
  if (!is_number && std::ranges::any_of(dimension, [](const Part& other) { return !other.word.empty(); }))
    throw wrong(text_, "has two words in one pair of parentheses: nothing would say how long each is");
  dimension.push_back(std::move(part));
}

DimensionForm::DimensionForm(std::string_view text) : text_(text) {
  bool is_open = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ') {
      ++at;
    } else if (c == '(' || c == ')') {
      if (is_open != (c == ')')) throw wrong(text_, "has a parenthesis too many");
      if (c == ')' && dimensions_.back().empty()) throw wrong(text_, "has nothing between two parentheses");
      if (c == '(') dimensions_.emplace_back();
      is_open = c == '(';
      ++at;
    } else {
      const std::size_t end = std::min(text.find_first_of(" ()", at), text.size());
      if (!is_open) dimensions_.emplace_back();
      add(text.substr(at, end - at), dimensions_.back());
      at = end;
    }
  }
  if (is_open) throw wrong(text_, "has a parenthesis too few");
  if (dimensions_.empty()) throw wrong(text_, "is empty");
  std::set<std::string> words;
  for (const Part& part : parts()) {
    if (!part.word.empty() && !words.insert(part.word).second)
      throw wrong(text_, fmt::format("has {} twice", quote(part.word)));
  }
}

std::vector<DimensionForm::Part> DimensionForm::parts() const {
  std::vector<Part> all;
  for (const Dimension& dimension : dimensions_) all.insert(all.end(), dimension.begin(), dimension.end());
  return all;
}

bool DimensionForm::has_parts_of(const DimensionForm& other) const { return parts() == other.parts(); }

std::vector<std::uint64_t> DimensionForm::measured(const Tensor& tensor) const {
  const auto misfit = [&] {
    return Error(Errc::mismatch, fmt::format("{} is not of the form {}", to_string(tensor.shape()), quote(text_)));
  };
  if (tensor.rank() != dimensions_.size()) throw misfit();
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    std::uint64_t known = 1;
    bool has_word = false;
    for (const Part& part : dimensions_[i]) {
      has_word = has_word || !part.word.empty();
      const auto product = checked_mul(known, part.word.empty() ? part.size : 1);
      if (!product) throw misfit();
      known = *product;
    }
    const std::uint64_t size = tensor.shape()[i];
    if (has_word ? size % known != 0 : size != known) throw misfit();
    for (const Part& part : dimensions_[i]) sizes.push_back(part.word.empty() ? part.size : size / known);
  }
  return sizes;
}

Tensor DimensionForm::reshaped(const Tensor& tensor, const DimensionForm& to) const {
  const std::vector<std::uint64_t> sizes = measured(tensor);
  names::Dims dims;
  auto size = sizes.begin();
  for (const Dimension& dimension : to.dimensions_) {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < dimension.size(); ++i, ++size) {
      const auto next = checked_mul(product, *size);
      if (!next) throw Error(Errc::limit, "the dimension would be too large");
      product = *next;
    }
    dims.push_back(product);
  }
  return names::shaped(tensor, std::move(dims));
}

}  // namespace ballast
