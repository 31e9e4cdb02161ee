// Methods that change some elements or rows and leave the others: SHiRA and trainable tokens. And LN tuning, which
// replaces whole tensors.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/low_rank.hpp"
#include "peft/merge/rules.hpp"

namespace ballast::peft {
namespace {

class ScatterEdit final : public AdditiveEdit {
 public:
  ScatterEdit(const Task& task, Extent extent, Tensor indices, Tensor values)
      : AdditiveEdit(extent, fmt::format("SHiRA of {} elements", values.numel()),
                     {std::move(indices), std::move(values)}, task.addition({})),
        name_(fmt::format("shira_indices of the module {}", quote(task.module.name))) {}

  std::uint64_t memory_bytes() const override { return parts()[1].numel() * sizeof(Element); }

  void prepare(const ReadRows&) override {
    const std::vector<float> values = read_floats(parts()[1]);
    const auto indices = read_indices(parts()[0], std::max(extent().rows, extent().columns), name_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t row = indices[i], column = indices[values.size() + i];
      if (row >= extent().rows || column >= extent().columns)
        throw Error(Errc::malformed, fmt::format("{} has the element {}, {} of a matrix of {} by {}", name_, row,
                                                 column, extent().rows, extent().columns));
      elements_.push_back({row, column, values[i]});
    }
    std::ranges::stable_sort(elements_, {}, &Element::row);
  }

 private:
  struct Element {
    std::uint64_t row, column;
    float value;
  };

  void fill(const Panel& panel, std::span<float> out) const override {
    std::ranges::fill(out, 0.0F);
    const auto begin = std::ranges::lower_bound(elements_, panel.first, {}, &Element::row);
    for (auto element = begin; element != elements_.end() && element->row < panel.first + panel.count; ++element)
      out[(element->row - panel.first) * panel.columns + element->column] += element->value;
  }

  std::string name_;
  std::vector<Element> elements_;  // by prepare()
};

class TokensEdit final : public Edit {
 public:
  TokensEdit(Extent extent, Tensor rows, std::vector<std::uint64_t> indices)
      : Edit(extent, fmt::format("{} trained tokens", indices.size()), {std::move(rows)}),
        indices_(std::move(indices)) {}

  void prepare(const ReadRows&) override { rows_ = read_matrix(parts()[0]); }

  void apply(const Panel& panel, std::span<float>) const override {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i] >= panel.first && indices_[i] < panel.first + panel.count)
        std::ranges::copy(rows_.row(i), panel.row(indices_[i] - panel.first).begin());
    }
  }

 private:
  std::vector<std::uint64_t> indices_;
  Matrix rows_;  // by prepare()
};

}  // namespace

// SHiRA: W + values at some elements.
void merge_shira(const Task& task) {
  const Tensor& values = task.module.at("shira_weight");
  require_shape(task.module, "shira_indices", {2, values.numel()});
  const Extent whole = extent(task.weight().shape());
  task.base.edit(task.weight_name(),
                 std::make_unique<ScatterEdit>(task, whole, task.module.at("shira_indices"), values));
}

void replace_tokens(const Task& task, const Tensor& rows, std::vector<std::uint64_t> indices) {
  task.refuse_unmerge("the rows that were trained replaced the ones before");
  const Tensor& weight = task.weight();
  const Extent whole = extent(weight.shape()), found = extent(rows.shape());
  if (found != Extent{indices.size(), whole.columns})
    throw Error(
        Errc::mismatch,
        fmt::format("the adapter has tokens of shape {}, but the configuration names {} of {}, whose weight has the "
                    "shape {}",
                    to_string(rows.shape()), indices.size(), quote(task.module.name), to_string(weight.shape())));
  for (const std::uint64_t index : indices) {
    if (index >= whole.rows)
      throw Error(Errc::mismatch, fmt::format("the adapter changes token {}, but {} has {} tokens", index,
                                              quote(task.weight_name()), whole.rows));
  }
  task.edit(task.weight_name(), std::make_unique<TokensEdit>(whole, rows, std::move(indices)));
}

// LN tuning: the norm's own weight and bias are replaced.
void merge_ln_tuning(const Task& task) {
  for (const auto& [part, tensor] : task.module.parts) {
    const std::string name = task.module.name + part.substr(part.rfind('.'));
    const Tensor& before = task.base.at(name);
    task.refuse_unmerge("its norm was replaced");
    if (before.shape() != tensor.shape()) require_shape(task.module, part, {before.numel()});
    const Extent whole = extent(before.shape());
    std::vector<std::uint64_t> all(whole.rows);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    task.edit(name, std::make_unique<TokensEdit>(whole, tensor, std::move(all)));
  }
}

}  // namespace ballast::peft
