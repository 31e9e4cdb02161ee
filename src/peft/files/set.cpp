// set_adapter_state_dict: an adapter put into a base, or into a model that has adapters already.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/text.hpp"
#include "peft/embeddings.hpp"
#include "peft/files/special.hpp"
#include "peft/initial.hpp"
#include "peft/names.hpp"
#include "peft/replicate.hpp"
#include "peft/targets.hpp"

namespace ballast {
namespace peft {
namespace {

class Setter {
 public:
  Setter(const StateDict& state, const StateDict& adapter, const AdapterConfig& config, std::string_view name,
         const SetAdapterOptions& options)
      : state_(state),
        file_(has_prefix(adapter) ? adapter : with_prefix(adapter)),
        config_(config),
        type_(peft_type(config)),
        name_(name),
        model_(options) {}

  SetAdapterResult set() {
    if (name_.empty() || name_.find('.') != std::string::npos) {
      throw Error(Errc::invalid_argument, "an adapter cannot be called " + quote(name_))
          .hint("a name without dots, such as \"default\"");
    }
    read_file();
    if (type_.kind == Kind::prompt) {
      set_prompt(model_, state_, file_, config_, name_);
    } else if (type_.kind == Kind::classifier) {
      set_classifier(model_, state_, file_, type_);
    } else {
      wrap_base();
      place_tensors();
      if (type_.name == "ADALORA") add_ranknum();
      find_missing();
      check_found();
    }
    return std::move(model_.result);
  }

 private:
  void read_file() {
    if (type_.name == "VBLORA") spread_largest(file_);
    for (const auto& [name, tensor] : file_) {
      if (type_.name == "OFT" && name.find(".oft_r.") != std::string_view::npos) {
        throw Error(Errc::unsupported, "tensor " + quote(name) + " is of the OFT of old releases")
            .hint("only PEFT up to 0.15.2 reads it: load it there, or train the adapter anew");
      }
      const auto parsed = parse_file_name(type_, name);
      if (parsed && parsed->is_layer(type_)) modules_.emplace(parsed->module);
      if (name.ends_with(kTokenDelta)) modules_.emplace(module_of(name));
    }
    for (const auto& parameters : {type_.shared, type_.categories}) check_shared(parameters);
  }

  // If the configuration says that parameters were saved, they must be there.
  void check_shared(std::string_view parameters) const {
    if (type_.optional.empty() || !config_.is_set(type_.saved_if)) return;
    const auto holds = [&](const auto& entry) {
      const auto parsed = parse_file_name(type_, entry.name);
      return parsed && has_word(parameters, parsed->parameter);
    };
    if (parameters.empty() || std::any_of(file_.begin(), file_.end(), holds)) return;
    throw Error(Errc::mismatch,
                quote(type_.saved_if) + " is set, but the adapter holds none of " + std::string(parameters))
        .hint("save it with PEFT again, or set \"" + std::string(type_.saved_if) +
              "\" to false to have them drawn anew");
  }

  // The base under its new names. A module of modules_to_save has a second copy, which is this adapter's.
  void wrap_base() {
    StateDict base = has_prefix(state_) ? state_ : with_prefix(state_);
    const auto is_this_adapters = [&](std::string_view name) {
      return parse_state_name(type_, name, name_).has_value();
    };
    if (std::none_of(base.begin(), base.end(), [&](const auto& entry) { return is_this_adapters(entry.name); })) {
      refuse_another_base(config_);
      base = replicate_layers(base, config_);
    }
    note_targets(base);
    wrapping_ = std::make_unique<Wrapping>(modules_, type_.wrapper, config_.words("modules_to_save"));
    std::vector<std::pair<std::string, Tensor>> copies;
    for (const auto& [name, tensor] : base) {
      const std::string wrapped = wrapping_->wrapped(name);
      model_.insert(wrapped, tensor);
      if (const std::string own = saved_name(wrapped); own != wrapped) copies.emplace_back(own, tensor);
    }
    // PEFT makes room for the ranks that are left.
    if (type_.name == "ADALORA") keep_ranks(model_.result.state, config_, name_);
    for (auto& [name, tensor] : copies) {
      if (model_.result.state.insert(name, std::move(tensor))) model_.expected.insert(name);
    }
    for (const auto& [name, tensor] : model_.result.state) {
      if (is_this_adapters(name) && name.find(".ranknum.") == std::string_view::npos) model_.expected.emplace(name);
    }
  }

  // "X.original_module.rest" -> "X.modules_to_save.NAME.rest", if X is a module of modules_to_save and was just met.
  std::string saved_name(const std::string& wrapped) const {
    const std::string original = wrapping_->saved_whole() + ".original_module.";
    if (wrapping_->saved_whole().empty() || !wrapped.starts_with(original)) return wrapped;
    return wrapping_->saved_whole() + ".modules_to_save." + name_ + "." + wrapped.substr(original.size());
  }

  // The modules that the configuration means, wrapped or not. A LoRA should have its matrices at each of them; an
  // adapter without a tensor at any module has only the configuration to tell which they are.
  void note_targets(const StateDict& base) {
    const TargetModules targets(config_);
    const bool is_lora = type_.name == "LORA", has_none = modules_.empty();
    if (!targets.is_known() || (!is_lora && !has_none)) return;
    for (const auto& [name, tensor] : base) {
      const std::string_view module = without_ending(module_of(name), kBaseLayer);
      if (!targets.contains(without_prefix(module))) continue;
      if (is_lora && name.ends_with(".weight") && tensor.rank() >= 2) targets_.emplace(module);
      if (has_none) modules_.emplace(module);
    }
  }

  void place_tensors() {
    for (const auto& [name, tensor] : file_) {
      const auto parsed = parse_file_name(type_, name);
      if (parsed && parsed->parameter == "shira_indices") continue;  // PEFT keeps them outside of the state dict
      if (parsed && parsed->is_layer(type_)) {
        const bool has_name = type_.kind != Kind::adaption;
        place_new(name, has_name ? state_name(type_, *parsed, name_) : std::string(name), tensor, parsed->module);
      } else if (parsed && parsed->module == kWhole) {
        place_shared(*parsed, tensor);
      } else if (name.ends_with(kTokenDelta)) {
        place_new(name, std::string(name) + "." + name_, tensor, module_of(name));
      } else {
        place_in_base(name, tensor);
      }
    }
  }

  void place_new(std::string_view name, const std::string& target, const Tensor& tensor, std::string_view module) {
    if (!wrapping_->met().contains(module)) {
      model_.result.unexpected.emplace_back(name);
      return;
    }
    ++placed_;
    if (model_.result.state.contains(target) || fits_base(target, tensor, module)) model_.put(target, tensor);
  }

  // A tensor of the whole adapter, of which state dicts have a copy at each module.
  void place_shared(const ParameterName& parsed, const Tensor& tensor) {
    model_.put(state_name(type_, parsed, name_), tensor);
    if (!has_word(type_.shared, parsed.parameter) || has_word(type_.layer, parsed.parameter)) return;
    for (const std::string& module : wrapping_->met())
      model_.put(state_name(type_, {module, parsed.parameter, parsed.rest}, name_), tensor);
  }

  // A bias, an embedding, or a module that is saved whole.
  void place_in_base(std::string_view name, const Tensor& tensor) {
    const std::string target = saved_name(wrapping_->wrapped(name));
    if (!model_.result.state.contains(target)) {
      model_.result.unexpected.emplace_back(name);
      return;
    }
    ++placed_;
    model_.replace(target, tensor);
  }

  // The matrices of a LoRA say what they fit: A has the columns of the weight, B its rows.
  bool fits_base(const std::string& target, const Tensor& tensor, std::string_view module) {
    const Tensor* weight = model_.result.state.find(std::string(module) + ".base_layer.weight");
    if (type_.name != "LORA" || weight == nullptr || weight->rank() != 2 || tensor.rank() != 2) return true;
    const bool is_a = target.ends_with(".lora_A." + name_ + ".weight");
    const bool is_b = target.ends_with(".lora_B." + name_ + ".weight");
    if (!is_a && !is_b) return true;
    // A Conv1D of GPT-2 has its weight the other way round.
    const bool is_transposed = config_.is_set("fan_in_fan_out");
    const std::uint64_t wanted = weight->shape()[(is_a != is_transposed) ? 1 : 0];
    const std::uint64_t given = tensor.shape()[is_a ? 1 : 0];
    if (wanted == given || config_.is_set("use_qalora")) return true;
    const std::uint64_t rank = tensor.shape()[is_a ? 0 : 1];
    model_.note_mismatch(target, tensor.shape(), is_a ? Shape{rank, wanted} : Shape{wanted, rank});
    model_.result.missing.push_back(target);
    return false;
  }

  // AdaLoRA counts the ranks that it began with, in a buffer that files do not hold.
  void add_ranknum() {
    StateDict& state = model_.result.state;
    const auto rank = static_cast<float>(config_.number("init_r", 12));
    for (const std::string& module : wrapping_->met()) {
      const Tensor* a = state.find(module + ".lora_A." + name_);
      const bool has_none_left = a != nullptr && a->rank() == 2 && a->shape()[0] == 0;
      const Tensor count = Tensor::from_values<float>(DType::f32, {1}, {{has_none_left ? 0 : rank}});
      const std::string name = module + ".ranknum." + name_;
      if (!state.insert(name, count) && has_none_left) state.replace(name, count);
    }
  }

  // The names that the state had for this adapter and the file has no tensor for. A LoRA also misses modules that the
  // configuration means, and the other halves of pairs.
  void find_missing() {
    std::vector<std::string>& missing = model_.result.missing;
    for (const std::string& name : model_.expected) {
      if (type_.shared.empty() || !is_copy(name)) missing.push_back(name);
    }
    for (const std::string& module : targets_) {
      if (wrapping_->met().contains(module)) continue;
      for (const char* half : {"A", "B"}) missing.push_back(matrix_name(module, half, is_lookup_table(module)));
    }
    if (type_.name == "LORA") {
      for (const std::string& module : wrapping_->met()) {
        for (const bool is_embedding : {false, true}) {
          const std::string a = matrix_name(module, "A", is_embedding), b = matrix_name(module, "B", is_embedding);
          const bool has_a = model_.result.state.contains(a), has_b = model_.result.state.contains(b);
          if (has_a != has_b) missing.push_back(has_a ? b : a);
        }
      }
    }
    std::ranges::sort(missing);
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  }

  std::string matrix_name(const std::string& module, const char* half, bool is_embedding) const {
    return fmt::format("{}.lora_{}{}.{}{}", module, is_embedding ? "embedding_" : "", half, name_,
                       is_embedding ? "" : ".weight");
  }

  bool is_copy(std::string_view name) const {
    const auto parsed = parse_state_name(type_, name, name_);
    return parsed && parsed->module != kWhole && !has_word(type_.layer, parsed->parameter);
  }

  void check_found() const {
    if (placed_ != 0 || file_.empty() || model_.result.unexpected.empty()) return;
    throw Error(Errc::mismatch, "none of the " + std::to_string(file_.size()) +
                                    " tensors of the adapter has a place in the model, such as " +
                                    quote(model_.result.unexpected.front()))
        .hint("is the adapter for another base? compare its names with those of the base");
  }

  const StateDict& state_;
  StateDict file_;
  const AdapterConfig& config_;
  const PeftType& type_;
  std::string name_;
  ModelState model_;
  Names modules_;  // that the adapter changes
  Names targets_;  // that a LoRA should change
  std::unique_ptr<Wrapping> wrapping_;
  std::uint64_t placed_ = 0;
};

}  // namespace
}  // namespace peft

SetAdapterResult set_adapter_state_dict(const StateDict& state, const StateDict& adapter, const AdapterConfig& config,
                                        std::string_view name, const SetAdapterOptions& options) {
  return peft::Setter(state, adapter, config, name, options).set();
}

}  // namespace ballast
