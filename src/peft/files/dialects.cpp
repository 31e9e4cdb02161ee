#include "peft/files/dialects.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/files/key_mapping.hpp"
#include "peft/initial.hpp"
#include "peft/names.hpp"

namespace ballast {

std::string_view name(AdapterDialect dialect) noexcept {
  constexpr std::string_view kNames[] = {"peft", "diffusers", "kohya", "gguf", "mlx"};
  return kNames[static_cast<std::size_t>(dialect)];
}

namespace peft {
namespace {

// Parts of a pipeline, with which names of diffusers and of ComfyUI begin.
constexpr std::string_view kComponentPrefixes[] = {
    "unet.", "transformer.", "text_encoder.", "text_encoder_2.", "text_encoder_3.", "prior.", "diffusion_model."};

bool any_name(const Checkpoint& file, const std::function<bool(std::string_view)>& is_such) {
  return std::any_of(file.begin(), file.end(), [&](const auto& entry) { return is_such(entry.name); });
}

bool is_kohya(std::string_view name) {
  constexpr std::string_view kParts[] = {".lora_down.", ".lora_up.", ".hada_", ".lokr_"};
  const auto is_in_name = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return name.starts_with("lora_") && std::ranges::any_of(kParts, is_in_name);
}

bool is_diffusers(std::string_view name) {
  if (name.starts_with(kRoot)) return false;
  const bool has_component =
      std::ranges::any_of(kComponentPrefixes, [&](std::string_view c) { return name.starts_with(c); });
  return (has_component && name.find(".lora_") != std::string_view::npos) || name.ends_with("lora.down.weight") ||
         name.ends_with(".lora_down.weight") || name.ends_with(".lora_linear_layer.down.weight");
}

bool is_mlx(std::string_view name) { return name.ends_with(".lora_a"); }

// Since 0.34, diffusers writes beside its tensors {"transformer.r": 4, "transformer.lora_alpha": 8, ...}.
void scale_by_metadata(LoraModules& modules, const Metadata& metadata) {
  const auto entry = metadata.find("lora_adapter_metadata");
  if (entry == metadata.end()) return;
  const Json fields = Json::parse(entry->second);
  for (auto& [name, module] : modules) {
    const std::string component = name.substr(0, name.find('.'));
    AdapterConfig config{Json(Json::Members())};
    for (const auto& [key, value] : fields.members()) {
      if (key.starts_with(component + ".")) config.fields.set(key.substr(component.size() + 1), value);
    }
    if (config.find("r") == nullptr || module.alpha) continue;
    module.scaling = lora_scaling(config, name.substr(std::min(name.size(), component.size() + 1)));
  }
}

void keep_fields(Adapter& adapter, const TypedMetadata& fields) {
  constexpr std::uint64_t kMostItems = 16;  // of arrays
  for (const MetadataEntry& field : fields) adapter.metadata.emplace(field.key, text(field, kMostItems));
}

}  // namespace

AdapterDialect dialect_of(const Checkpoint& file) {
  if (file.format == Format::gguf) return AdapterDialect::gguf;
  if (any_name(file, is_kohya)) return AdapterDialect::kohya;
  if (any_name(file, is_mlx)) return AdapterDialect::mlx;
  if (any_name(file, is_diffusers)) return AdapterDialect::diffusers;
  return AdapterDialect::peft;
}

void read_dialect(Adapter& adapter, const Checkpoint& file, const AdapterLoadOptions& options, KeyMapping& mapping) {
  LoraModules modules;
  if (adapter.dialect == AdapterDialect::kohya) modules = read_kohya(adapter.tensors, options.base_names);
  if (adapter.dialect == AdapterDialect::mlx) modules = read_mlx(adapter.tensors, adapter.config);
  if (adapter.dialect == AdapterDialect::gguf) modules = read_gguf(file, options.names);
  if (adapter.dialect == AdapterDialect::diffusers) {
    modules = read_diffusers(adapter.tensors);
    scale_by_metadata(modules, adapter.metadata);
  }
  keep_fields(adapter, file.typed_metadata);
  const bool has_scale = std::ranges::any_of(modules, [](const auto& m) { return m.second.alpha || m.second.scaling; });
  if (!has_scale) {
    adapter.notes.push_back({adapter.source, "nothing says the scaling: it is taken to be 1", Note::Kind::remark});
  }
  put_modules(adapter, mapping.map(std::move(modules)));
}

Checkpoint write_dialect(const Adapter& adapter, AdapterDialect dialect, const NameOptions& names) {
  refuse_another_base(adapter.config);  // no other dialect could say so
  const LoraModules modules = take_modules(adapter, dialect);
  if (dialect == AdapterDialect::gguf) return write_gguf(modules, adapter, names);
  Checkpoint file;
  if (dialect == AdapterDialect::kohya) {
    file.tensors = write_kohya(modules);
    for (const auto& [key, value] : adapter.metadata) {
      if (key.starts_with("ss_") || key.starts_with("modelspec.")) file.metadata.emplace(key, value);
    }
  } else if (dialect == AdapterDialect::diffusers) {
    file.tensors = write_diffusers(modules);
    file.metadata = {{"format", "pt"}};
  } else {
    throw Error(Errc::unsupported, "adapters of " + std::string(name(dialect)) + " are read, and not written")
        .hint("give " + mention(Remedy::dialect, "peft, diffusers, kohya or gguf"));
  }
  file.files = adapter.files;
  return file;
}

}  // namespace peft
}  // namespace ballast
