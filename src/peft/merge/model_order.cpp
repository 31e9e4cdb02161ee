#include "peft/merge/model_order.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/text.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

// The order in which the models of transformers define modules that stand beside each other.
constexpr std::array<std::string_view, 24> kOrder = {
    "embed_tokens", "wte",       "wpe",     "layers", "h",         "self_attn", "attn",   "attention",
    "q_proj",       "query",     "k_proj",  "key",    "v_proj",    "value",     "o_proj", "c_attn",
    "mlp",          "gate_proj", "up_proj", "c_fc",   "down_proj", "c_proj",    "norm",   "lm_head",
};

bool is_before(std::string_view a, std::string_view b) {
  const std::string_view names[] = {a, b};
  while (!a.empty() && !b.empty()) {
    const std::string_view x = take_segment(a), y = take_segment(b);
    if (x == y) continue;
    if (const auto i = number_in(x), j = number_in(y); i && j) return *i < *j;
    const auto* i = std::ranges::find(kOrder, x);
    const auto* j = std::ranges::find(kOrder, y);
    if (i != kOrder.end() && j != kOrder.end()) return i < j;
    throw Error(Errc::unsupported,
                fmt::format("PEFT drew values for the modules of this adapter in the order of the model, and it is "
                            "not known whether {} comes before {}",
                            quote(names[0]), quote(names[1])))
        .hint("save the adapter together with them: save_indices=True, save_projection=True");
  }
  return a.size() < b.size();
}

}  // namespace

std::vector<std::size_t> model_order(const std::vector<Module>& modules) {
  std::vector<std::size_t> order(modules.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return is_before(modules[a].name, modules[b].name); });
  return order;
}

}  // namespace ballast::peft
