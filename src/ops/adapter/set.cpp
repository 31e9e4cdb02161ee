// set_adapter_state_dict: an adapter put into a base, or into a model that has adapters already.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "ops/adapter/initial.hpp"
#include "ops/adapter/insertion.hpp"
#include "ops/adapter/layers.hpp"
#include "ops/adapter/modules.hpp"
#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"
#include "ops/adapter/special.hpp"

namespace ballast {
namespace {

using namespace adapter;  // NOLINT(google-build-using-namespace): these are its public functions

using Names = std::set<std::string, std::less<>>;

class Setter {
 public:
  Setter(const StateDict& state, const StateDict& adapter, const AdapterConfig& config, std::string_view name,
         const SetAdapterOptions& options)
      : state_(state), file_(adapter), config_(config), type_(peft_type(config)), name_(name), options_(options) {}

  SetAdapterResult set() {
    if (name_.empty() || name_.find('.') != std::string::npos) {
      throw Error(Errc::invalid_argument, "an adapter cannot be called " + quote(name_))
          .hint("a name without dots, such as \"default\"");
    }
    read_file();
    if (type_.kind == Kind::prompt) return set_prompt();
    if (type_.kind == Kind::classifier) return set_classifier();
    rewrite_base();
    place_tensors();
    add_ranknum();
    find_missing();
    check_found();
    return std::move(result_);
  }

 private:
  void read_file() {
    if (!has_prefix(file_)) file_ = with_prefix(file_);
    if (type_.name == "VBLORA") spread_largest(file_);
    for (const auto& [name, tensor] : file_) {
      if (type_.name == "OFT" && name.find(".oft_r.") != std::string_view::npos) {
        throw Error(Errc::unsupported, "tensor " + quote(name) + " is of the OFT of old releases")
            .hint("only PEFT up to 0.15.2 reads it: load it there, or train the adapter anew");
      }
      const auto parsed = parse_file_name(type_, name);
      if (parsed && parsed->is_layer(type_)) modules_.emplace(parsed->module);
      if (name.ends_with(".token_adapter.trainable_tokens_delta")) modules_.emplace(name.substr(0, name.rfind('.')));
    }
    for (const auto& parameters : {type_.shared, type_.categories}) check_shared(parameters);
  }

  // What save_projection promises must be there.
  void check_shared(std::string_view parameters) {
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

  // The base under its new names, and of modules that are saved whole a second copy.
  void rewrite_base() {
    StateDict base = has_prefix(state_) ? state_ : with_prefix(state_);
    if (!has_this_adapter(base)) {
      refuse_another_base(config_);
      base = replicate_layers(base, config_);
    }
    note_targets(base);
    // Without a tensor at each module, only the configuration tells which they are.
    if (modules_.empty()) add_target_modules(base);
    const std::vector<std::string> modules_to_save = words_of(config_, "modules_to_save");
    wrapping_ = std::make_unique<Wrapping>(modules_, type_.wrapper, modules_to_save);
    std::vector<std::pair<std::string, Tensor>> copies;
    for (const auto& [name, tensor] : base) {
      const std::string wrapped = wrapping_->wrapped(name);
      const std::string& module = wrapping_->saved_whole();
      const std::string original = module + ".original_module.";
      if (!module.empty() && wrapped.starts_with(original))
        copies.emplace_back(module + ".modules_to_save." + name_ + "." + wrapped.substr(original.size()), tensor);
      insert(wrapped, tensor);
    }
    // PEFT makes room for the ranks that are left.
    if (type_.name == "ADALORA") keep_ranks(result_.state, config_, name_);
    for (auto& [name, tensor] : copies) {
      if (result_.state.insert(name, std::move(tensor))) expected_.insert(name);
    }
    for (const auto& [name, tensor] : result_.state) {
      if (parse_state_name(type_, name, name_) && name.find(".ranknum.") == std::string_view::npos)
        expected_.emplace(name);
    }
  }

  bool has_this_adapter(const StateDict& base) const {
    return std::any_of(base.begin(), base.end(),
                       [&](const auto& entry) { return parse_state_name(type_, entry.name, name_).has_value(); });
  }

  void add_target_modules(const StateDict& base) {
    const TargetModules targets(config_);
    if (!targets.is_known()) return;
    for (const auto& [name, tensor] : base) {
      const std::string_view module = name.substr(0, name.rfind('.'));
      if (targets.contains(module.substr(prefix_of(module).size()))) modules_.emplace(module);
    }
  }

  // The matrices that the configuration of a LoRA means, wrapped or not.
  void note_targets(const StateDict& base) {
    const TargetModules targets(config_);
    if (type_.name != "LORA" || !targets.is_known()) return;
    for (const auto& [name, tensor] : base) {
      if (!name.ends_with(".weight") || tensor.rank() < 2) continue;
      std::string_view module = name.substr(0, name.rfind('.'));
      const std::string_view wrapper = ".base_layer";
      if (module.ends_with(wrapper)) module.remove_suffix(wrapper.size());
      if (targets.contains(module.substr(prefix_of(module).size()))) targets_.emplace(module);
    }
  }

  void insert(const std::string& name, const Tensor& tensor) {
    if (result_.state.insert(name, tensor)) return;
    throw Error(Errc::mismatch, "two tensors of the state would be called " + quote(name))
        .hint("is the state already adapted, in part, under other names?");
  }

  void place_tensors() {
    for (const auto& [name, tensor] : file_) {
      const auto parsed = parse_file_name(type_, name);
      const bool is_layer = parsed && parsed->is_layer(type_);
      if (parsed && parsed->parameter == "shira_indices") continue;  // PEFT keeps them outside of the state dict
      if (is_layer) {
        const bool has_name = type_.kind != Kind::adaption;
        place_new(name, has_name ? state_name(type_, *parsed, name_) : std::string(name), tensor, parsed->module);
      } else if (parsed && parsed->module == "base_model") {
        place_shared(*parsed, tensor);
      } else if (name.ends_with(".token_adapter.trainable_tokens_delta")) {
        place_new(name, std::string(name) + "." + name_, tensor, name.substr(0, name.rfind('.')));
      } else {
        place_in_base(name, tensor);
      }
    }
  }

  void place_new(std::string_view name, const std::string& target, const Tensor& tensor, std::string_view module) {
    if (!wrapping_->met().contains(module)) {
      result_.unexpected.emplace_back(name);
      return;
    }
    ++placed_;
    if (result_.state.contains(target))
      replace(target, tensor);
    else if (fits_base(target, tensor, module))
      result_.state.insert(target, tensor);
  }

  void place_shared(const ParameterName& parsed, const Tensor& tensor) {
    const std::string target = state_name(type_, parsed, name_);
    if (!result_.state.insert(target, tensor)) replace(target, tensor);
    if (!has_word(type_.shared, parsed.parameter) || has_word(type_.layer, parsed.parameter)) return;
    for (const std::string& module : wrapping_->met()) {
      ParameterName copy = parsed;
      copy.module = module;
      const std::string at_module = state_name(type_, copy, name_);
      if (!result_.state.insert(at_module, tensor)) replace(at_module, tensor);
    }
  }

  // A bias, an embedding, or a module that is saved whole.
  void place_in_base(std::string_view name, const Tensor& tensor) {
    const std::string wrapped = wrapping_->wrapped(name);
    const std::string& module = wrapping_->saved_whole();
    const std::string original = module + ".original_module.";
    const bool is_saved_whole = !module.empty() && wrapped.starts_with(original);
    const std::string target =
        is_saved_whole ? module + ".modules_to_save." + name_ + "." + wrapped.substr(original.size()) : wrapped;
    if (!result_.state.contains(target)) {
      result_.unexpected.emplace_back(name);
      return;
    }
    ++placed_;
    replace(target, tensor);
  }

  void replace(const std::string& target, const Tensor& tensor) {
    const Tensor& old = result_.state.at(target);
    if (old.shape() == tensor.shape()) {
      result_.state.replace(target, tensor);
      expected_.erase(target);
      return;
    }
    mismatched(target, tensor.shape(), old.shape());
  }

  void mismatched(const std::string& target, const Shape& given, const Shape& wanted) {
    if (!options_.ignore_mismatched_sizes) {
      throw Error(Errc::mismatch, "tensor " + quote(target) + " has the shape " + to_string(given) +
                                      " in the adapter, where the model needs " + to_string(wanted))
          .hint("is the adapter for another base? --ignore-mismatched leaves out what does not fit");
    }
    result_.mismatched.push_back(target);
  }

  // The matrices of a LoRA say what they fit: A has the columns of the weight, B its rows.
  bool fits_base(const std::string& target, const Tensor& tensor, std::string_view module) {
    const Tensor* weight = result_.state.find(std::string(module) + ".base_layer.weight");
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
    mismatched(target, tensor.shape(), is_a ? Shape{rank, wanted} : Shape{wanted, rank});
    result_.missing.push_back(target);
    return false;
  }

  // AdaLoRA counts the ranks that it began with, in a buffer that no file holds.
  void add_ranknum() {
    if (type_.name != "ADALORA") return;
    const auto rank = static_cast<float>(config_.number("init_r", 12));
    for (const std::string& module : wrapping_->met()) {
      const Tensor* a = result_.state.find(module + ".lora_A." + name_);
      const bool has_none_left = a != nullptr && a->rank() == 2 && a->shape()[0] == 0;
      const Tensor count = Tensor::from_values<float>(DType::f32, {1}, {{has_none_left ? 0 : rank}});
      const std::string name = module + ".ranknum." + name_;
      if (!result_.state.insert(name, count) && has_none_left) result_.state.replace(name, count);
    }
  }

  // What the state had of this adapter and the file did not; of a LoRA, also modules that it should have been at, and
  // the halves of pairs.
  void find_missing() {
    for (const std::string& name : expected_) {
      if (type_.shared.empty() || !is_copy(name)) result_.missing.push_back(name);
    }
    for (const std::string& module : targets_) {
      if (wrapping_->met().contains(module)) continue;
      for (const char* half : {"A", "B"})
        result_.missing.push_back(is_lookup_table(module) ? fmt::format("{}.lora_embedding_{}.{}", module, half, name_)
                                                          : fmt::format("{}.lora_{}.{}.weight", module, half, name_));
    }
    if (type_.name == "LORA") {
      for (const std::string& module : wrapping_->met()) {
        for (const auto& [a, b] :
             {std::pair("lora_A", "lora_B"), std::pair("lora_B", "lora_A"),
              std::pair("lora_embedding_A", "lora_embedding_B"), std::pair("lora_embedding_B", "lora_embedding_A")})
          expect_partner(module, a, b);
      }
    }
    std::ranges::sort(result_.missing);
    result_.missing.erase(std::unique(result_.missing.begin(), result_.missing.end()), result_.missing.end());
  }

  void expect_partner(const std::string& module, const std::string& parameter, const std::string& partner) {
    const std::string ending = parameter.starts_with("lora_embedding") ? "" : ".weight";
    const auto at = [&](const std::string& which) { return module + "." + which + "." + name_ + ending; };
    if (result_.state.contains(at(parameter)) && !result_.state.contains(at(partner)))
      result_.missing.push_back(at(partner));
  }

  bool is_copy(std::string_view name) const {
    const auto parsed = parse_state_name(type_, name, name_);
    return parsed && parsed->module != "base_model" && !has_word(type_.layer, parsed->parameter);
  }

  void check_found() const {
    if (placed_ != 0 || file_.empty() || result_.unexpected.empty()) return;
    throw Error(Errc::mismatch, "none of the " + std::to_string(file_.size()) +
                                    " tensors of the adapter has a place in the model, such as " +
                                    quote(result_.unexpected.front()))
        .hint("is the adapter for another base? compare its names with those of the base");
  }

  SetAdapterResult set_prompt() {
    const bool is_adapted = has_prefix(state_);
    for (const auto& [name, tensor] : state_)
      result_.state.insert(is_adapted || name.starts_with("prompt_encoder.") ? std::string(name)
                                                                             : std::string(kRoot) + std::string(name),
                           tensor);
    if (const Tensor* embedding = find_embedding(result_.state))
      result_.state.insert("word_embeddings.weight", *embedding);
    const std::string encoder = "prompt_encoder." + name_ + ".";
    for (const auto& [name, tensor] : encoder_of(file_, type_, config_)) {
      const std::string target = encoder + std::string(name);
      if (!result_.state.insert(target, tensor)) replace(target, tensor);
    }
    for (const auto& [name, tensor] : file_) {
      if (has_word(type_.layer, name)) continue;
      if (result_.state.contains(name))
        replace(std::string(name), tensor);  // embeddings that were saved along
      else
        result_.unexpected.emplace_back(name);
    }
    const std::string first = encoder + std::string(first_of_encoder(type_));
    if (!result_.state.contains(first)) result_.missing.push_back(first);
    return std::move(result_);
  }

  // The first table of vectors of words, as the models of transformers call theirs.
  static const Tensor* find_embedding(const StateDict& state) {
    for (const auto& [name, tensor] : state) {
      const std::string_view module = name.substr(0, name.rfind('.'));
      if (name.ends_with(".weight") && tensor.rank() == 2 && is_word_embedding(module)) return &tensor;
    }
    return nullptr;
  }

  // The model has its experts already; X-LoRA takes it in whole, as "lora_model".
  SetAdapterResult set_classifier() {
    const StateDict base = has_prefix(state_) ? state_ : with_prefix(state_);
    const std::string prefix(kPrefix), taken_in = "base_model.lora_model.model.";
    for (const auto& [name, tensor] : base) {
      const bool is_outside = name.starts_with(prefix);
      insert(is_outside ? taken_in + std::string(name.substr(prefix.size())) : std::string(name), tensor);
    }
    for (const auto& [name, tensor] : file_) {
      if (!parse_file_name(type_, name))
        result_.unexpected.emplace_back(name);
      else if (!result_.state.insert(name, tensor))
        replace(std::string(name), tensor);
    }
    return std::move(result_);
  }

  const StateDict& state_;
  StateDict file_;
  const AdapterConfig& config_;
  const PeftType& type_;
  std::string name_;
  SetAdapterOptions options_;
  Names modules_;  // that the adapter changes
  Names targets_;  // that it should change, of a LoRA
  std::unique_ptr<Wrapping> wrapping_;
  Names expected_;  // what the state has of this adapter
  std::uint64_t placed_ = 0;
  SetAdapterResult result_;
};

}  // namespace

SetAdapterResult set_adapter_state_dict(const StateDict& state, const StateDict& adapter, const AdapterConfig& config,
                                        std::string_view name, const SetAdapterOptions& options) {
  return Setter(state, adapter, config, name, options).set();
}

}  // namespace ballast
