#include "peft/choice.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "peft/matrix.hpp"

namespace ballast::peft {
namespace {

Choice choose(std::span<const float> logits, std::uint64_t count) {
  Choice choice;
  choice.indices.resize(logits.size());
  std::iota(choice.indices.begin(), choice.indices.end(), std::uint64_t{0});
  std::ranges::stable_sort(choice.indices, [&](auto a, auto b) { return logits[a] > logits[b]; });
  choice.indices.resize(std::min<std::uint64_t>(count, logits.size()));
  float sum = 0;
  for (const std::uint64_t i : choice.indices) {
    choice.weights.push_back(std::exp(logits[i] - logits[choice.indices.front()]));
    sum += choice.weights.back();
  }
  for (float& weight : choice.weights) weight /= sum;
  return choice;
}

}  // namespace

std::vector<Choice> choices_of(const Tensor& logits, std::uint64_t count) {
  const std::uint64_t width = logits.shape()[logits.rank() - 1];
  const Matrix values = read_matrix(logits, {logits.numel() / width, width});
  std::vector<Choice> choices;
  for (std::uint64_t i = 0; i < values.rows(); ++i) choices.push_back(choose(values.row(i), count));
  return choices;
}

std::vector<Choice> saved_choices(const Tensor& indices, const Tensor& weights, std::uint64_t vectors) {
  const std::uint64_t count = indices.shape()[indices.rank() - 1];
  const std::vector<std::uint64_t> all = read_indices(indices, vectors, "a choice from the vector bank");
  const std::vector<float> given = read_floats(weights);
  std::vector<Choice> choices(all.size() / count);
  for (std::size_t row = 0; row < choices.size(); ++row) {
    const auto of_row = std::span(all).subspan(row * count, count);
    choices[row].indices.assign(of_row.begin(), of_row.end());
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      choices[row].weights.push_back(i + 1 == count ? 1 - sum : given[row * (count - 1) + i]);
      sum += choices[row].weights.back();
    }
  }
  return choices;
}

}  // namespace ballast::peft
