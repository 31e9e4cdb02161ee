#include "peft/left_out.hpp"

#include <fmt/format.h>

#include "core/name_list.hpp"

namespace ballast::peft {
namespace {

// The format, the architecture and the scaling: every dialect says them in its own way.
bool is_told_otherwise(std::string_view key) {
  return key == "format" || key == "lora_adapter_metadata" || key == "general.architecture" || key == "general.type" ||
         key.starts_with("adapter.");
}

}  // namespace

std::vector<Note> left_out_metadata(const Adapter& adapter, const Checkpoint& written) {
  NameList lost;
  for (const auto& [key, value] : adapter.metadata) {
    if (!is_told_otherwise(key) && !written.metadata.contains(key) && !written.typed_metadata.contains(key))
      lost.add(key);
  }
  if (lost.empty()) return {};
  return {{adapter.source, fmt::format("metadata of the adapter is left out: {}", lost.text()), Note::Kind::remark}};
}

}  // namespace ballast::peft
