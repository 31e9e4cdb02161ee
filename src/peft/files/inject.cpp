// inject_adapter: set_adapter_state_dict on a whole checkpoint.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast {
namespace {

// Whatever the checkpoint says of names that are gone.
void forget_names(Checkpoint& model) {
  for (const auto& [removed, kept] : model.aliases) model.metadata.erase(removed);
  model.aliases.clear();
  if (model.composites.empty()) return;
  model.notes.push_back(
      {"",
       fmt::format("what holds the parts of sparse and quantized tensors together is left out, such as of {}",
                   quote(model.composites.front().name)),
       Note::Kind::remark});
  model.composites.clear();
}

}  // namespace

InjectedAdapter inject_adapter(Checkpoint base, const Adapter& adapter, std::string_view name,
                               const SetAdapterOptions& options) {
  check_adapter(adapter);
  if (has_gguf_names(base)) base = to_names(std::move(base), NameStyle::huggingface, options.names);
  try {
    SetAdapterResult set = set_adapter_state_dict(base.tensors, adapter.tensors, adapter.config, name, options);
    base.tensors = std::move(set.state);
    forget_names(base);
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
