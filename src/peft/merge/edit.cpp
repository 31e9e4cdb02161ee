#include "peft/merge/edit.hpp"

#include <algorithm>

namespace ballast::peft {
namespace {

class WeightedEdit final : public Edit {
 public:
  WeightedEdit(EditPtr edit, double factor)
      : Edit(edit->extent(), edit->step(), edit->parts()),
        edit_(std::move(edit)),
        factor_(static_cast<float>(factor)) {}

  std::uint64_t memory_bytes() const override { return edit_->memory_bytes(); }
  std::uint64_t rows_together() const override { return edit_->rows_together(); }
  void prepare(const ReadRows& rows) override { edit_->prepare(rows); }

  void apply(const Panel& panel, std::span<float> scratch) const override {
    const std::vector<float> before(panel.values.begin(), panel.values.end());
    edit_->apply(panel, scratch);
    for (std::size_t i = 0; i < before.size(); ++i)
      panel.values[i] = before[i] + factor_ * (panel.values[i] - before[i]);
  }

 private:
  EditPtr edit_;
  float factor_;
};

}  // namespace

std::uint64_t Edit::memory_bytes() const {
  std::uint64_t total = 0;
  for (const Tensor& part : parts_) total += part.numel() * sizeof(float);
  return total;
}

void AdditiveEdit::apply(const Panel& panel, std::span<float> scratch) const {
  const auto added = scratch.first(panel.values.size());
  fill(panel, added);
  for (const DType dtype : addition_.roundings) round_through(dtype, added);
  const auto factor = static_cast<float>(addition_.factor);
  for (std::size_t i = 0; i < added.size(); ++i) panel.values[i] += factor * added[i];
}

EditPtr weighted(EditPtr edit, double factor) {
  if (factor == 1) return edit;
  return std::make_unique<WeightedEdit>(std::move(edit), factor);
}

}  // namespace ballast::peft
