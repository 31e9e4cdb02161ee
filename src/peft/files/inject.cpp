// inject_adapter: set_adapter_state_dict on a whole checkpoint.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

// The model with the state that the adapter was set in.
void take_state(Checkpoint& model, const StateDict& state) {
  const std::vector<Composite> composites = model.composites;
  replace_tensors(model, state, [&](std::string_view name) {
    const Tensor *now = state.find(name), *then = model.find(name);
    return now != nullptr && then != nullptr && now->storage() == then->storage();
  });
  if (composites.size() == model.composites.size()) return;
  model.notes.push_back(
      {"",
       fmt::format("what holds the parts of sparse and quantized tensors together is left out, such as of {}",
                   quote(composites.front().name)),
       Note::Kind::remark});
}

}  // namespace

InjectedAdapter inject_adapter(Checkpoint base, const Adapter& adapter, std::string_view name,
                               const SetAdapterOptions& options) {
  check_adapter(adapter);
  if (has_gguf_names(base)) base = to_names(std::move(base), NameStyle::huggingface, options.names);
  try {
    SetAdapterResult set = set_adapter_state_dict(base.tensors, adapter.tensors, adapter.config, name, options);
    take_state(base, set.state);
    if (adapter.config.peft_type() == "SHIRA")
      base.notes.push_back({adapter.source,
                            "a state dict does not hold the indices of SHiRA's weights: keep the adapter's own file",
                            Note::Kind::remark});
    return {std::move(base), std::move(set.missing), std::move(set.unexpected), std::move(set.mismatched)};
  } catch (Error& error) {
    throw error.in(adapter.source);
  }
}

}  // namespace ballast
