// How much a LoRA changes each module.
#include <ballast/adapter_changes.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <ballast/names.hpp>
#include <ballast/stats.hpp>

#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "peft/files/deduce.hpp"
#include "peft/matrix.hpp"
#include "peft/scaling.hpp"
#include "peft/symmetric.hpp"

namespace ballast {
namespace peft {
namespace {

// Beyond that, the eigenvalues of a module take longer than anybody waits.
constexpr std::uint64_t kMostRank = 512;

// A [rank, in], B [out, rank]; of convolutions, the other dimensions count to the outer one.
struct Halves {
  Matrix a, b;
};

std::optional<Halves> halves_of(const LoraPair& pair) {
  if (pair.a == nullptr || pair.b == nullptr || pair.a->rank() < 2 || pair.b->rank() < 2) return std::nullopt;
  const std::uint64_t rank = pair.a->shape()[0];
  const std::uint64_t out = pair.b->shape()[0];
  if (rank == 0 || out == 0 || pair.a->numel() == 0 || pair.b->numel() != out * rank) return std::nullopt;
  return Halves{read_matrix(*pair.a, {rank, pair.a->numel() / rank}), read_matrix(*pair.b, {out, rank})};
}

// The entropy of the shares, as the number of equal shares that have the same.
double effective_rank(const std::vector<double>& squares) {
  double sum = 0, entropy = 0;
  for (const double square : squares) sum += std::max(square, 0.0);
  if (sum == 0) return 0;
  for (const double square : squares) {
    if (const double share = square / sum; share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

// The squares of the singular values of B·A are the eigenvalues of (A·A')·(B'·B), two matrices of rank by rank.
void measure(AdapterChange& change, const Halves& halves) {
  const Symmetric inner = gram_of_rows(halves.a), outer = gram_of_rows(transposed(halves.b));
  double square = 0;
  for (std::size_t i = 0; i < inner.values.size(); ++i) square += inner.values[i] * outer.values[i];
  change.norm = std::fabs(change.scaling) * std::sqrt(std::max(square, 0.0));
  const bool has_ranks = std::isfinite(square) && inner.size <= kMostRank;
  change.effective_rank =
      has_ranks ? effective_rank(product_eigenvalues(inner, outer)) : std::numeric_limits<double>::quiet_NaN();
}

// Names of the adapter are those of Hugging Face.
Checkpoint with_names(const Checkpoint& base) {
  return has_gguf_names(base) ? to_names(base, NameStyle::huggingface, {.allow_unknown_heads = true}) : base;
}

const Tensor* weight_of(const Checkpoint& base, const std::string& module) {
  if (const Tensor* weight = base.find(module + ".weight")) return weight;
  return base.find(module);
}

}  // namespace
}  // namespace peft

std::optional<double> AdapterChange::share() const {
  if (!base_norm || *base_norm == 0 || !std::isfinite(norm / *base_norm)) return std::nullopt;
  return norm / *base_norm;
}

std::vector<AdapterChange> adapter_changes(const Adapter& adapter, const Checkpoint* base, const Progress& progress,
                                           unsigned threads) {
  const peft::PeftType& type = *peft::types_of(adapter).front();
  if (type.name != "LORA") return {};
  const auto pairs = peft::lora_pairs(adapter, type);
  const Checkpoint named = base == nullptr ? Checkpoint() : peft::with_names(*base);
  std::vector<AdapterChange> changes;
  std::vector<std::optional<peft::LoraPair>> halves;
  std::uint64_t total = 0;
  for (const auto& [module, pair] : pairs) {
    if (pair.a == nullptr || pair.b == nullptr) continue;
    const peft::Scale scale = peft::scale_at(adapter.config, module);
    changes.push_back({module, scale.rank, scale.alpha, peft::factor_of(adapter.config, scale)});
    halves.emplace_back(pair);
    total += pair.a->nbytes() + pair.b->nbytes();
    if (const Tensor* weight = peft::weight_of(named, module)) total += weight->nbytes();
  }
  ProgressMeter meter(progress, "measuring", total);
  ThreadPool(threads).run(changes.size(), [&](std::size_t i, unsigned) {
    AdapterChange& change = changes[i];
    if (const auto both = peft::halves_of(*halves[i])) peft::measure(change, *both);
    meter.add(halves[i]->a->nbytes() + halves[i]->b->nbytes());
    const Tensor* weight = peft::weight_of(named, change.module);
    if (weight == nullptr || !weight->has_data()) return;
    change.base_norm = stats(*weight, {.threads = 1}).l2;
    meter.add(weight->nbytes());
  });
  std::ranges::sort(changes, [](const auto& a, const auto& b) { return natural_less(a.module, b.module); });
  return changes;
}

}  // namespace ballast
