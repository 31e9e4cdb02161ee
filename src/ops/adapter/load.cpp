// load_adapter: a folder as PEFT saves it, or one file.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>
#include <ballast/open.hpp>

#include <re2/re2.h>

#include <filesystem>
#include <memory>
#include <utility>

#include <ballast/scan.hpp>

#include "checkpoint/left_out.hpp"
#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "io/byte_source.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/deduce.hpp"
#include "ops/adapter/dialects.hpp"
#include "ops/adapter/prefix.hpp"
#include "ops/place.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigName = "adapter_config.json";
// The first that is there counts. MLX has a name of its own.
constexpr std::string_view kWeightNames[] = {"adapter_model.safetensors", "adapter_model.bin", "adapters.safetensors",
                                             "pytorch_lora_weights.safetensors"};
constexpr std::uint64_t kMaxConfigBytes = 64'000'000;  // the rank pattern of AdaLoRA lists every rank of every module

struct Place {
  fs::path weights;
  fs::path config;  // empty where there is none
};

Place place_in(const fs::path& folder) {
  const fs::path config = fs::is_regular_file(folder / kConfigName) ? folder / kConfigName : fs::path();
  for (const std::string_view file : kWeightNames) {
    if (fs::is_regular_file(folder / file)) return {folder / file, config};
  }
  if (config.empty()) {
    throw Error(Errc::not_found, "no adapter in this folder: it has neither adapter_model.safetensors nor .bin")
        .in(folder.string())
        .hint("give the folder that PEFT saved, or the file with the weights");
  }
  throw Error(Errc::not_found, "a configuration without weights: adapter_model.safetensors and .bin are missing")
      .in(folder.string())
      .hint("was the download complete? the weights lie beside adapter_config.json");
}

// A file's configuration lies beside it, where the file has the name that PEFT gives it.
Place place_of(const std::string& path, const std::string& subfolder) {
  const fs::path target = subfolder.empty() ? fs::path(path) : fs::path(path) / subfolder;
  if (fs::is_directory(target)) return place_in(target);
  const fs::path beside = target.parent_path() / kConfigName;
  if (target.filename() == kConfigName) return place_in(target.parent_path().empty() ? "." : target.parent_path());
  const bool is_peft = std::ranges::find(kWeightNames, target.filename().string()) != std::end(kWeightNames);
  return {target, is_peft && fs::is_regular_file(beside) ? beside : fs::path()};
}

std::string mapped(std::string_view name, const std::vector<RenameRule>& rules,
                   const std::vector<std::unique_ptr<re2::RE2>>& expressions) {
  const std::string_view prefix = adapter::prefix_of(name);
  std::string rest(name.substr(prefix.size()));
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (re2::RE2::GlobalReplace(&rest, *expressions[i], rules[i].replacement) > 0) break;
  }
  return std::string(prefix) + rest;
}

StateDict map_keys(const StateDict& tensors, const std::vector<RenameRule>& rules) {
  std::vector<std::unique_ptr<re2::RE2>> expressions;
  for (const RenameRule& rule : rules) {
    expressions.push_back(std::make_unique<re2::RE2>(rule.pattern, re2::RE2::Quiet));
    if (!expressions.back()->ok())
      throw Error(Errc::invalid_argument,
                  "the expression " + quote(rule.pattern) + " is wrong: " + expressions.back()->error());
  }
  StateDict result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const std::string target = mapped(name, rules, expressions);
    if (!result.insert(target, tensor))
      throw Error(Errc::invalid_argument, "two tensors of the adapter would be called " + quote(target));
  }
  return result;
}

// The places of SHiRA, which PEFT writes as floats on Windows.
void use_integers(StateDict& tensors) {
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(".shira_indices") && is_floating(tensor.dtype())) found.emplace_back(name, tensor);
  }
  for (const auto& [name, tensor] : found) {
    tensors.replace(name, adapter::computed(DType::i32, tensor.shape(), "as integers", {tensor}, [](const auto& from) {
                      std::vector<std::int32_t> integers;
                      for (const float value : adapter::floats_of(from[0]))
                        integers.push_back(static_cast<std::int32_t>(value));
                      const auto bytes = std::as_bytes(std::span(integers));
                      return std::vector<std::byte>(bytes.begin(), bytes.end());
                    }));
  }
}

Adapter load_to_host(const std::string& path, const AdapterLoadOptions& options) {
  const Place place = place_of(path, options.subfolder);
  OpenOptions open_options;
  open_options.limits = options.limits;
  open_options.safety = options.safety;
  const Checkpoint file = open(place.weights.string(), open_options);
  if (!options.allow_dangerous) refuse_dangerous(file);

  Adapter result;
  result.source = path;
  result.dialect = adapter::dialect_of(file);
  result.tensors = file.tensors;
  result.metadata = file.metadata;
  result.files = file.files;
  result.notes = file.notes;
  note_values_left_out(file, false, result.notes);
  if (!place.config.empty()) result.config = load_adapter_config(place.config.string());
  if (result.dialect != AdapterDialect::peft) {
    adapter::read_dialect(result, file, options);
    return result;
  }
  if (!options.key_mapping.empty()) result.tensors = map_keys(result.tensors, options.key_mapping);
  if (!adapter::has_prefix(result.tensors)) result.tensors = adapter::with_prefix(result.tensors);
  if (place.config.empty()) adapter::deduce_config(result);
  use_integers(result.tensors);
  return result;
}

}  // namespace

AdapterConfig load_adapter_config(const std::string& path) try {
  return AdapterConfig::parse(io::read_text_file(path, kMaxConfigBytes)->view());
} catch (Error& error) {
  throw error.in(path);
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
