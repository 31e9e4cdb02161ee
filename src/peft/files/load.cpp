// load_adapter: a folder as PEFT saves it, or one file.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/open.hpp>
#include <ballast/remote.hpp>

#include <algorithm>
#include <utility>

#include <ballast/scan.hpp>

#include "checkpoint/left_out.hpp"
#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "io/section.hpp"
#include "llamacpp/names/match.hpp"
#include "load/place.hpp"
#include "peft/computed.hpp"
#include "peft/files/deduce.hpp"
#include "peft/files/dialects.hpp"
#include "peft/files/key_mapping.hpp"
#include "peft/matrix.hpp"
#include "peft/names.hpp"

namespace ballast {
namespace {

constexpr std::string_view kConfigName = "adapter_config.json";
// The first of these that is there counts. MLX has a name of its own.
constexpr std::string_view kWeightNames[] = {"adapter_model.safetensors", "adapter_model.bin", "adapters.safetensors",
                                             "pytorch_lora_weights.safetensors"};
constexpr std::uint64_t kMaxConfigBytes = 64'000'000;  // the rank pattern of AdaLoRA lists every rank of every module

struct AdapterFiles {
  std::string weights;
  std::string config;  // empty if there is none
};

// `path_of` says what a file in the folder is called as a whole.
template <class PathOf>
AdapterFiles files_in(const std::string& folder, const PathOf& path_of, const Files& files) {
  const auto there = [&](std::string_view name) {
    const std::string path = path_of(std::string(name));
    return files.exists(path) ? path : std::string();
  };
  const std::string config = there(kConfigName);
  for (const std::string_view name : kWeightNames) {
    if (const std::string weights = there(name); !weights.empty()) return {weights, config};
  }
  if (config.empty()) {
    throw Error(Errc::not_found, "no adapter in this folder: it has neither adapter_model.safetensors nor .bin")
        .in(folder)
        .hint("give the folder that PEFT saved, or the file with the weights");
  }
  throw Error(Errc::not_found, "a configuration without weights: adapter_model.safetensors and .bin are missing")
      .in(folder)
      .hint("was the download complete? the weights lie beside adapter_config.json");
}

// A configuration belongs to the file beside it only if the file has a name that PEFT gives it.
AdapterFiles files_of(const std::string& path, const std::string& subfolder, const Files& files) {
  const std::string target = subfolder.empty() ? path : files.inside(path, subfolder);
  if (files.list(target))
    return files_in(
        target, [&](const std::string& name) { return files.inside(target, name); }, files);
  const auto beside = [&](const std::string& name) { return files.beside(target, name); };
  const std::string_view name = std::string_view(target).substr(target.find_last_of('/') + 1);
  if (name == kConfigName) return files_in(beside("."), beside, files);
  const std::string config = beside(std::string(kConfigName));
  const bool is_peft = std::ranges::find(kWeightNames, name) != std::end(kWeightNames);
  return {target, is_peft && files.exists(config) ? config : std::string()};
}

AdapterConfig read_config(const std::string& path, const Files& files) try {
  return AdapterConfig::parse(io::read_text(*files.open(path), kMaxConfigBytes)->view());
} catch (Error& error) {
  throw error.in(path);
}

// PEFT on Windows writes the indices of SHiRA as floats.
void use_integers(StateDict& tensors) {
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(".shira_indices") && is_floating(tensor.dtype())) found.emplace_back(name, tensor);
  }
  for (const auto& [name, tensor] : found) {
    tensors.replace(name, peft::computed(DType::i32, tensor.shape(), "as integers", {tensor}, [](const auto& from) {
                      const std::vector<float> values = peft::read_floats(from[0]);
                      return peft::to_bytes(std::vector<std::int32_t>(values.begin(), values.end()));
                    }));
  }
}

// In an archive, names begin with the members', and the configuration is no checkpoint.
void refuse_archive(const Checkpoint& file) {
  if (file.format != Format::archive) return;
  throw Error(Errc::unsupported, "this is an archive, and not an adapter")
      .in(file.target)
      .hint("unpack it, and give the folder or the file that was in it");
}

Adapter load_to_host(const std::string& given, AdapterLoadOptions options) {
  peft::KeyMapping mapping(options.key_mapping);
  const std::string path = path_or_repository(given);
  options.open = options_for(path, options.open);
  const AdapterFiles files = files_of(path, options.subfolder, *options.open.files);
  const Checkpoint file = open(files.weights, options.open);
  refuse_archive(file);
  if (!options.allow_dangerous) refuse_dangerous(file);

  Adapter result;
  result.source = path;
  result.dialect = peft::dialect_of(file);
  result.tensors = file.tensors;
  result.metadata = file.metadata;
  result.files = file.files;
  result.notes = file.notes;
  note_values_left_out(file, false, result.notes);
  if (!files.config.empty()) result.config = read_config(files.config, *options.open.files);
  if (result.dialect != AdapterDialect::peft) {
    peft::read_dialect(result, file, options, mapping);
    mapping.add_notes(result);
    return result;
  }
  result.tensors = mapping.map(result.tensors);
  mapping.add_notes(result);
  if (!peft::has_prefix(result.tensors)) result.tensors = peft::with_prefix(result.tensors);
  if (files.config.empty()) peft::deduce_config(result);
  use_integers(result.tensors);
  return result;
}

}  // namespace

AdapterConfig load_adapter_config(const std::string& path) { return read_config(path, *local_files()); }

namespace {

// What config.json says about a base matters only for adapters in GGUF, so its errors are none of the others'.
NameOptions completed_by_folder(const AdapterLoadOptions& options, const std::string& base) try {
  return completed(options.names, base, options.open);
} catch (const Error&) {
  return options.names;
}

}  // namespace

AdapterLoadOptions for_base(const Checkpoint& base, AdapterLoadOptions options) {
  options.names = completed(std::move(options.names), base);
  if (!has_gguf_names(base) && !base.target.empty()) options.names = completed_by_folder(options, base.target);
  NameOptions names = options.names;
  names.allow_unknown_heads = true;  // names do not depend on heads
  const bool is_gguf = has_gguf_names(base) && names::find_architecture(base, names) != nullptr;
  const Checkpoint renamed = is_gguf ? to_names(base, NameStyle::huggingface, names) : base;
  for (const auto& entry : renamed) options.base_names.emplace_back(entry.name);
  return options;
}

Adapter load_adapter(const std::string& path, const AdapterLoadOptions& options) {
  Adapter adapter = load_to_host(path, options);
  if (!options.initial_adapter.empty()) {
    AdapterLoadOptions initial = options;
    initial.subfolder.clear();
    adapter = subtract_initial(std::move(adapter), load_to_host(options.initial_adapter, initial));
  }
  if (options.device.kind() == Device::Kind::cpu) return adapter;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : adapter.tensors) tensors.push_back(tensor);
  ProgressMeter nobody_watches({}, "loading", 0);
  tensors = place(tensors, std::vector<Device>(tensors.size(), options.device), {}, nobody_watches);
  StateDict there;
  for (std::size_t i = 0; i < tensors.size(); ++i) there.insert(adapter.tensors[i].name, std::move(tensors[i]));
  adapter.tensors = std::move(there);
  return adapter;
}

}  // namespace ballast
