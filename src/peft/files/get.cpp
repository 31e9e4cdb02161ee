// get_adapter_state_dict: of everything in the state dict of an adapted model, what a file of one adapter holds.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <set>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/embeddings.hpp"
#include "peft/files/special.hpp"
#include "peft/names.hpp"
#include "transform/wrappers.hpp"

namespace ballast {
namespace peft {
namespace {

// Names as PEFT's own state dicts have them, without the wrappers of training.
StateDict normalised(const StateDict& state, const PeftType& type) {
  StateDict result;
  result.reserve(state.size());
  for (const auto& [name, tensor] : state) result.insert(without_wrappers(name), tensor);
  return type.kind == Kind::prompt || has_prefix(result) ? result : with_prefix(result);
}

// Whether the tensor belongs to the base itself, and neither to an adapter nor to a module of modules_to_save.
bool is_of_base(std::string_view name) {
  while (!name.empty()) {
    const std::string_view segment = take_segment(name);
    if (segment == "modules_to_save" || segment == "original_module" || is_any_parameter(segment)) return false;
  }
  return true;
}

class Getter {
 public:
  Getter(const StateDict& state, const AdapterConfig& config, std::string_view adapter,
         const GetAdapterOptions& options)
      : config_(config),
        type_(peft_type(config)),
        adapter_(adapter),
        state_(normalised(state, type_)),
        options_(options) {}

  StateDict get() {
    if (type_.kind == Kind::prompt)
      file_ = prompt_of(state_, type_, config_, adapter_);
    else
      add_parameters();
    if (file_.empty()) throw_nothing();
    if (type_.kind == Kind::layers) {
      add_modules_to_save();
      add_tokens();
      add_biases();
    }
    add_embeddings();
    if (type_.name == "ADALORA") keep_ranks(file_, config_);
    if (type_.name == "VBLORA") keep_largest(file_, config_);
    if (type_.name == "SHIRA") draw_indices(file_, state_, config_);
    return std::move(file_);
  }

 private:
  void add_parameters() {
    for (const auto& [name, tensor] : state_) {
      if (type_.kind != Kind::layers) {  // the other kinds carry no adapter's name
        if (parse_file_name(type_, name)) file_.insert(name, tensor);
        continue;
      }
      const auto parsed = parse_state_name(type_, name, adapter_);
      if (!parsed || !is_saved(type_, config_, parsed->parameter)) continue;
      const bool is_copy = parsed->module != kWhole && !has_word(type_.layer, parsed->parameter);
      const bool is_token_adapter = parsed->module.ends_with(".token_adapter");  // of another type: see add_tokens
      if (is_copy || is_token_adapter) continue;
      if (parsed->module != kWhole) modules_.emplace(parsed->module);
      file_.insert(file_name(*parsed), tensor);
    }
  }

  // "X.modules_to_save.NAME.rest" -> "X.rest"
  void add_modules_to_save() {
    const std::string infix = ".modules_to_save." + adapter_ + ".";
    for (const auto& [name, tensor] : state_) {
      const std::size_t at = name.find(infix);
      if (at == std::string_view::npos) continue;
      file_.insert(std::string(name.substr(0, at + 1)) + std::string(name.substr(at + infix.size())), tensor);
    }
  }

  // "X.token_adapter.trainable_tokens_delta.NAME" loses the name. An output head that is tied to the embeddings follows
  // them and is not saved: the configuration does not name it.
  void add_tokens() {
    const std::string ending = std::string(kTokenDelta) + "." + adapter_;
    const Json* indices = config_.find("trainable_token_indices");
    for (const auto& [name, tensor] : state_) {
      if (!name.ends_with(ending)) continue;
      const std::string_view module = name.substr(0, name.size() - ending.size());
      const auto names_it = [&](const Json::Member& member) { return module.ends_with("." + member.first); };
      const bool is_named = indices != nullptr && indices->is_object()
                                ? std::ranges::any_of(indices->members(), names_it)
                                : !module.ends_with(".lm_head");
      if (is_named) file_.insert(name.substr(0, name.size() - adapter_.size() - 1), tensor);
    }
  }

  void add_biases() {
    const std::string bias = config_.text("bias", "none");
    if (bias == "none") return;
    if (bias != "all" && !bias.ends_with("_only")) {
      throw Error(Errc::malformed, "the field \"bias\" is " + quote(bias))
          .hint("it must be \"none\", \"all\" or, for a LoRA, \"lora_only\"");
    }
    if (bias == "all") {
      for (const auto& [name, tensor] : state_) {
        if (name.ends_with(".bias") && is_of_base(name)) file_.insert(name, tensor);
      }
      return;
    }
    // Releases that did not wrap modules had the bias beside the parameters.
    for (const std::string& module : modules_) {
      for (const std::string_view spelling : {".base_layer.bias", ".bias"}) {
        const std::string name = module + std::string(spelling);
        if (const Tensor* tensor = state_.find(name)) file_.insert(name, *tensor);
      }
    }
  }

  void add_embeddings() {
    if (options_.embeddings == SaveEmbeddings::never) return;
    const Embeddings embeddings(state_);
    if (embeddings.empty() && (options_.embeddings == SaveEmbeddings::always || options_.base_vocabulary != 0)) {
      throw Error(Errc::not_found, "no tensor of the state dict is called like embeddings, such as embed_tokens or wte")
          .about("")
          .hint("they cannot be saved along: leave out " + mention(Remedy::save_embeddings) + " and " +
                mention(Remedy::base_vocabulary));
    }
    const bool are_adapted = std::ranges::any_of(modules_, [](const std::string& m) { return is_embedding(m); });
    const bool has_tokens = type_.name == "TRAINABLE_TOKENS" || config_.find("trainable_token_indices") != nullptr;
    const bool is_automatic = options_.embeddings == SaveEmbeddings::automatic;
    const bool are_resized = options_.base_vocabulary != 0 && !embeddings.have_rows(options_.base_vocabulary);
    if (is_automatic && !(are_adapted && !has_tokens) && !are_resized) return;
    // Where only adapted ones are saved, a head beside adapted embeddings is as it was. Where more than that is asked
    // for, or all were resized, each of them goes along.
    const bool only_adapted = is_automatic && !are_resized;
    for (const auto& [name, tensor] : state_) {
      const bool is_wrapped = module_of(name).ends_with(kBaseLayer);
      if (embeddings.contain(name) && (is_wrapped || !only_adapted)) file_.insert(name, tensor);
    }
  }

  // Names the adapters of this type that there are, since somebody may have meant one of them.
  [[noreturn]] void throw_nothing() const {
    std::set<std::string> others;
    for (const auto& [name, tensor] : state_) {
      if (const auto other = adapter_in(type_, name)) others.insert(*other);
    }
    Error error(Errc::not_found, "the state dict has no tensors of an adapter " + quote(adapter_) + " of the type " +
                                     std::string(type_.name));
    error.about(adapter_);
    if (others.empty()) throw error.hint("it is a base without an adapter, or the configuration is of another type");
    std::string names;
    for (const std::string& other : others) names += (names.empty() ? "" : ", ") + quote(other);
    throw error.hint("it has " + names + ": choose one with " + mention(Remedy::adapter_name));
  }

  const AdapterConfig& config_;
  const PeftType& type_;
  std::string adapter_;
  StateDict state_, file_;
  GetAdapterOptions options_;
  std::set<std::string> modules_;  // that are adapted, in the names of the state dict
};

}  // namespace
}  // namespace peft

StateDict get_adapter_state_dict(const StateDict& state, const AdapterConfig& config, std::string_view name,
                                 const GetAdapterOptions& options) {
  return peft::Getter(state, config, name, options).get();
}

Adapter extract_adapter(const Checkpoint& model, const AdapterConfig& config, std::string_view name,
                        const GetAdapterOptions& options) try {
  if (!options.allow_dangerous) refuse_dangerous(model);
  Adapter adapter;
  adapter.config = config;
  adapter.tensors = get_adapter_state_dict(model.tensors, config, name, options);
  adapter.source = model.target;
  adapter.files = model.files;
  return adapter;
} catch (Error& error) {
  throw error.in(model.target);
}

}  // namespace ballast
