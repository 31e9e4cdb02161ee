#include <ballast/error.hpp>
#include <ballast/sidecars.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/quantization/packed_parts.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "checkpoint/sidecars/config_text.hpp"
#include "checkpoint/sidecars/names.hpp"
#include "core/name_list.hpp"
#include "save/plan.hpp"
#include "save/plan_key.hpp"
#include "tensor/source_storage.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kDTypeKeys[] = {"torch_dtype", "dtype"};
constexpr std::string_view kQuantizationKeys[] = {"quantization_config", "compression_config", "quantization"};

// The floating dtype that most bytes have, but for those of parts of quantized weights.
std::optional<DType> dominant_dtype(const Checkpoint& checkpoint) {
  std::map<DType, std::uint64_t> bytes;
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    if (is_floating(tensor.dtype()) && !packed.contain(tensor)) bytes[tensor.dtype()] += tensor.nbytes();
  }
  if (bytes.empty()) return std::nullopt;
  return std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; })->first;
}

bool has_become_dense(const Checkpoint& model, const Checkpoint& written) {
  if (!model.quantization) return !model.dequantized.empty();
  const PackedParts parts(model);
  return std::ranges::none_of(written, [&](const auto& entry) { return parts.contain(entry.tensor); });
}

// The quantization_config of weights that were quantized since the model was opened; null if none were.
Json new_quantization(const Checkpoint& model, const Checkpoint& written) {
  if (!written.quantization || written.quantization->config.is_null()) return nullptr;
  const bool is_old = model.quantization && model.quantization->config == written.quantization->config;
  return is_old ? Json() : written.quantization->config;
}

// The dtype that config.json calls the dtype of the model. Parts of weights that were quantized have others.
std::optional<DType> model_dtype(const Checkpoint& written, bool is_quantized) {
  return is_quantized ? std::optional(written.quantization->dtype) : dominant_dtype(written);
}

// Whether a name is written that the model does not have; parts of quantized weights have names of their own.
bool has_other_names(const Checkpoint& model, const Checkpoint& written) {
  std::set<std::string_view> composites;
  for (const Composite& composite : model.composites) composites.insert(composite.name);
  return std::ranges::any_of(written, [&](const auto& entry) {
    const bool is_part = written.quantization && written.quantization->parts.contains(entry.name);
    return !model.contains(entry.name) && !composites.contains(entry.name) && !is_part;
  });
}

std::string whole_text(const Source& source) {
  std::string text(static_cast<std::size_t>(source.size_bytes()), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// The caller may have made the list.
void refuse_to_leave(const fs::path& folder, const std::string& name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (!is_basename(name.substr(begin, end - begin)))
      throw Error(Errc::unsafe, fmt::format("the file {} would not be in the model's folder", quote(name)))
          .in(folder.string());
    begin = end + 1;
  }
}

class SidecarAdder {
 public:
  SidecarAdder(SavePlan& plan, const Checkpoint& model, const Checkpoint& written)
      : plan_(plan), model_(model), written_(written), folder_(fs::path(plan.files.front().path).parent_path()) {
    for (const SavePlan::File& file : plan.files) taken_.insert(fs::path(file.path).lexically_normal());
    std::error_code ignored;
    is_same_folder_ = fs::equivalent(folder_.empty() ? fs::path(".") : folder_, model.target, ignored);
    quantization_ = new_quantization(model, written);
    is_dense_ = has_become_dense(model, written);
  }

  void add(Sidecars sidecars) {
    for (Sidecar& file : sidecars.files) {
      const SidecarName* row = sidecar_name(file.name);
      if (says_else() && row != nullptr && row->kind == SidecarName::Kind::quantization)
        sidecars.left.push_back(file.name);
      else
        add(file);
    }
    say(sidecars);
    if (!plan_.key.empty()) plan_.key = plan_key(plan_, sources_);
    plan_.is_far = plan_.is_far && !plan_.key.empty();
  }

 private:
  // Whether what the model's files say of its quantization is no longer true.
  bool says_else() const { return is_dense_ || !quantization_.is_null(); }

  void add(Sidecar& file) {
    refuse_to_leave(folder_, file.name);
    SavePlan::File planned;
    planned.path = (folder_ / file.name).string();
    if (taken_.contains(fs::path(planned.path).lexically_normal())) return;
    const std::optional<std::string> text = file.name == kConfig ? corrected(*file.source) : std::nullopt;
    if (is_same_folder_ && !text) return;
    if (text) {
      const auto bytes = std::as_bytes(std::span(*text));
      planned.head.assign(bytes.begin(), bytes.end());
      planned.size_bytes = text->size();
    } else if (const std::uint64_t size = file.source->size_bytes(); size != 0) {
      planned.items.push_back({"", Tensor(DType::u8, {size}, source_storage(file.source, 0, size)), 0});
      planned.size_bytes = size;
    }
    has_config_ = has_config_ || file.name == kConfig;
    constexpr std::size_t kMostNamed = 30;
    if (names_.size() <= kMostNamed) names_.push_back(names_.size() == kMostNamed ? "…" : quote(file.name));
    sources_.push_back({file.source->name(), file.source->size_bytes(), file.source});
    add_file(plan_, std::move(planned));
  }

  // config.json with what the weights are now; nothing if it says that already.
  std::optional<std::string> corrected(const Source& source) {
    try {
      ConfigText config(whole_text(source));
      const std::string before = config.text();
      correct_dtype(config);
      correct_quantization(config);
      return config.text() == before ? std::nullopt : std::optional(config.text());
    } catch (const Error& error) {
      if (error.code() != Errc::malformed && error.code() != Errc::limit) throw;
      note(fmt::format("config.json is copied as it is: {}", error.message()));
      return std::nullopt;
    }
  }

  void correct_quantization(ConfigText& config) {
    if (!says_else()) return;
    for (const std::string_view key : kQuantizationKeys) {
      const bool is_replaced = key == kQuantizationKeys[0] && !quantization_.is_null();
      if (config.remove(key) != 0 && !is_replaced) changes_.push_back(fmt::format("{} is removed", key));
    }
    if (quantization_.is_null()) return;
    config.add(kQuantizationKeys[0], quantization_);
    changes_.push_back(fmt::format("{} is that of {}", kQuantizationKeys[0], written_.quantization->scheme));
  }

  void correct_dtype(ConfigText& config) {
    const std::optional<DType> before = dominant_dtype(model_);
    const std::optional<DType> now = model_dtype(written_, !quantization_.is_null());
    const bool is_same = before == now && model_.dequantized.empty();
    if (!now || is_same || info(*now).torch_name.empty()) return;
    const std::string_view name = info(*now).torch_name;
    std::set<std::string> old;  // what config.json may call the dtype that the weights had
    if (before) old.emplace(info(*before).torch_name);
    for (const std::string_view key : kDTypeKeys) {
      if (auto said = config.find(key)) old.insert(*std::move(said));
    }
    old.erase(std::string(name));
    for (const std::string_view key : kDTypeKeys) {
      std::size_t count = 0;
      for (const std::string& said : old) count += config.replace(key, said, name);
      if (count != 0) changes_.push_back(fmt::format("{} is {}", key, name));
    }
  }

  void say(const Sidecars& sidecars) {
    if (!names_.empty()) {
      note(fmt::format("taken along: {}{}", fmt::join(names_, ", "),
                       changes_.empty() ? "" : fmt::format("; in config.json, {}", fmt::join(changes_, ", "))));
    }
    plan_.notes.insert(plan_.notes.end(), sidecars.notes.begin(), sidecars.notes.end());
    NameList left;
    for (const std::string& name : sidecars.left) left.add(name);
    if (!left.empty() && !is_same_folder_) note("left in the folder of the source: " + left.text());
    if (has_config_ && !is_dense_ && !written_.dequantized.empty() && quantization_.is_null())
      note(
          "config.json still says that the weights are quantized, since some are: programs may take the others for "
          "such weights, too");
    if (has_config_ && has_other_names(model_, written_))
      note("config.json describes the names that the model had: what is written has others");
  }

  void note(std::string text) { plan_.notes.push_back({"", std::move(text), Note::Kind::remark}); }

  SavePlan& plan_;
  const Checkpoint& model_;
  const Checkpoint& written_;
  fs::path folder_;
  std::set<fs::path> taken_;
  std::vector<CheckpointFile> sources_ = model_.files;
  std::vector<std::string> names_;
  std::vector<std::string> changes_;
  Json quantization_;  // what config.json is to say of weights that are quantized now
  bool is_same_folder_ = false, is_dense_ = false, has_config_ = false;
};

}  // namespace

void add_sidecars(SavePlan& plan, Sidecars sidecars, const Checkpoint& model, const Checkpoint& written) {
  if (plan.files.empty()) return;
  SidecarAdder(plan, model, written).add(std::move(sidecars));
}

}  // namespace ballast
