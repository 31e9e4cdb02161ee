#include "formats/torch/walk_budget.hpp"

#include <ballast/error.hpp>

#include "core/remedy.hpp"

namespace ballast::torch {
namespace {

[[noreturn]] void throw_spent() {
  throw Error(Errc::limit, "the same objects are reached by too many paths: the tree is larger than its file")
      .hint(mention(Remedy::scan) + " looks into it all the same");
}

}  // namespace

WalkBudget::WalkBudget(const pickle::Graph& graph)
    : steps_(16 * (std::uint64_t{graph.size()} + graph.link_count()) + 10'000),
      bytes_(16 * graph.source()->size_bytes() + (std::uint64_t{4} << 20)) {}

void WalkBudget::spend_steps(std::uint64_t count) {
  if (count > steps_) throw_spent();
  steps_ -= count;
}

void WalkBudget::spend_bytes(std::uint64_t count) {
  if (count > bytes_) throw_spent();
  bytes_ -= count;
}

}  // namespace ballast::torch
