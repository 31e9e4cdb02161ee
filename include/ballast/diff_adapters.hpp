// diff_adapters: how far two LoRAs are apart in what they add to the weights of their base.
//
// Two LoRAs that say the same may have other matrices, of other ranks, in other dialects. So the products s·B·A are
// compared, by their norms and the angle between them, which the small matrices tell: no product is computed. It may be
// called from several threads at once. The result owns everything in it.
//
// Example:
//   const AdapterComparison compared = diff_adapters(load_adapter("a"), load_adapter("b"));
//   if (const auto change = compared.report.overall.relative_change()) std::cout << *change << "\n";
#pragma once

#include <ballast/adapter.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/diff.hpp>

namespace ballast {

// Each side has a tensor without data for every weight that the LoRA changes, and the tensors that it holds as they are
// (biases, magnitudes of DoRA, modules that were trained as a whole). A change of a weight has `numbers`, and neither
// max_abs nor max_at; a relative change below a millionth counts as none.
struct AdapterComparison {
  Checkpoint a, b;
  DiffReport report;
};

// `options` are for the tensors that are compared as they are. Errc::unsupported if one of the two is no LoRA, or has a
// rank above 1024; Errc::mismatch if the two matrices of a module do not fit each other, or one of them is missing.
AdapterComparison diff_adapters(const Adapter& a, const Adapter& b, const DiffOptions& options = {});

}  // namespace ballast
