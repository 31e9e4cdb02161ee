// LoRA of a parameter of experts, which is [experts, out, in], or [experts, in, out] in models that keep it so. A is
// [experts * rank, in] and B is [out, rank * experts]: the expert is the first index of A's rows and the last of B's
// columns.
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/lora.hpp"

namespace ballast::peft {
namespace {

bool fits_experts(const Tensor& parameter, const Tensor& a, const Tensor& b, bool transposed) {
  const Shape& shape = parameter.shape();
  if (shape.rank() != 3 || shape[0] == 0) return false;
  const std::uint64_t out = shape[transposed ? 2 : 1], in = shape[transposed ? 1 : 2];
  return a.shape()[0] % shape[0] == 0 && a.shape()[1] == in && b.shape()[0] == out && b.shape()[1] == a.shape()[0];
}

class ExpertsEdit final : public AdditiveEdit {
 public:
  ExpertsEdit(const Task& task, const Tensor& parameter, const Tensor& a, const Tensor& b, bool transposed,
              double scaling)
      : AdditiveEdit({parameter.shape()[0] * parameter.shape()[1], parameter.shape()[2]},
                     lora_step(task, a.shape()[0] / parameter.shape()[0], scaling), {a, b},
                     task.addition({parameter.dtype()})),
        experts_(parameter.shape()[0]),
        rows_(parameter.shape()[1]),
        transposed_(transposed),
        scaling_(static_cast<float>(scaling)) {}

  // A pair of factors for each expert.
  void prepare(const ReadRows&) override {
    const Matrix a = read_matrix(parts()[0]), b = read_matrix(parts()[1]);
    const std::uint64_t rank = a.rows() / experts_;
    for (std::uint64_t e = 0; e < experts_; ++e) {
      Matrix left({b.rows(), rank}), right({rank, a.columns()});
      for (std::uint64_t r = 0; r < rank; ++r) {
        for (std::uint64_t o = 0; o < b.rows(); ++o) left(o, r) = b(o, r * experts_ + e);
        std::ranges::copy(a.row(e * rank + r), right.row(r).begin());
      }
      factors_.push_back(transposed_ ? Factors{transposed(right), transposed(left)}
                                     : Factors{std::move(left), std::move(right)});
    }
  }

 private:
  void fill(const Panel& panel, std::span<float> out) const override {
    for (std::uint64_t done = 0, count = 0; done < panel.count; done += count) {
      const std::uint64_t expert = (panel.first + done) / rows_, first = (panel.first + done) % rows_;
      count = std::min(panel.count - done, rows_ - first);
      const auto part = out.subspan(done * panel.columns, count * panel.columns);
      fill_product(factors_[expert], addition().is_exact, {first, count, panel.columns, {}}, part);
      for (float& value : part) value *= scaling_;
    }
  }

  std::uint64_t experts_, rows_;
  bool transposed_;
  float scaling_;
  std::vector<Factors> factors_;  // by prepare()
};

}  // namespace

void merge_experts(const Task& task, const Tensor& a, const Tensor& b, const std::vector<std::string>& parameters) {
  // Most models keep [out, in]. The other way round is tried only if no parameter fits that way.
  std::vector<std::string> fitting;
  bool transposed = false;
  for (const bool other : {false, true}) {
    if (!fitting.empty()) break;
    transposed = other;
    std::ranges::copy_if(parameters, std::back_inserter(fitting),
                         [&](const std::string& name) { return fits_experts(task.base.at(name), a, b, other); });
  }
  if (fitting.size() != 1)
    throw Error(Errc::mismatch,
                fmt::format("the adapter changes a parameter of {} by matrices of {} and {}, which {} of "
                            "its target_parameters could be",
                            quote(task.module.name), to_string(a.shape()), to_string(b.shape()),
                            fitting.empty() ? "none" : "several"))
        .hint("adapter files do not say which parameter it is: their shapes must");
  const std::string& name = fitting.front();
  const Tensor& parameter = task.base.at(name);
  require_rank(task, name, "lora_A", a.shape()[0], parameter.shape()[0]);
  task.base.edit(name, std::make_unique<ExpertsEdit>(task, parameter, a, b, transposed, task.scaling(name)));
}

}  // namespace ballast::peft
