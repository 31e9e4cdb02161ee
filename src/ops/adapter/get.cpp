// get_adapter_state_dict: of everything in the state dict of an adapted model, what a file of one adapter holds.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "core/text.hpp"
#include "ops/adapter/modules.hpp"
#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"
#include "ops/adapter/special.hpp"

namespace ballast {
namespace {

using namespace adapter;  // NOLINT(google-build-using-namespace): these are its public functions

// Names as PEFT's own state dicts have them, whatever training wrapped around the modules.
StateDict normalised(const StateDict& state, const PeftType& type) {
  StateDict result;
  result.reserve(state.size());
  for (const auto& [name, tensor] : state) result.insert(without_wrappers(name), tensor);
  return type.kind == Kind::prompt || has_prefix(result) ? result : with_prefix(result);
}

constexpr std::string_view kWrapper = ".base_layer";

// The modules that turn words into vectors and back. Which they are is told by their names; a head has the shape of the
// embeddings, unless it is called so in every model.
class Embeddings {
 public:
  explicit Embeddings(const StateDict& state) {
    for (const auto& [name, tensor] : state) {
      if (is_weight(name, tensor) && is_word_embedding(table_of(name))) words_.emplace(table_of(name), tensor.shape());
    }
    // Encoders and decoders have views of one that is shared.
    const auto is_shared = [](const auto& entry) { return entry.first.ends_with(".shared"); };
    if (std::ranges::any_of(words_, is_shared))
      std::erase_if(words_, [&](const auto& entry) { return !is_shared(entry); });
    for (const auto& [name, tensor] : state) {
      if (!is_weight(name, tensor) || is_word_embedding(table_of(name))) continue;
      const std::string_view module = table_of(name);
      const auto is_alike = [&](const auto& entry) { return entry.second == tensor.shape(); };
      if (is_embedding(module) || (may_be_output_head(module) && std::ranges::any_of(words_, is_alike)))
        heads_.emplace(module, tensor.shape());
    }
  }

  bool empty() const { return words_.empty() && heads_.empty(); }
  bool have_rows(std::uint64_t count) const {
    const auto has_rows = [&](const auto& entry) { return entry.second[0] == count; };
    return std::ranges::all_of(words_, has_rows) && std::ranges::all_of(heads_, has_rows);
  }
  bool contain(std::string_view name) const {
    return words_.contains(module_of(name)) || heads_.contains(module_of(name));
  }

 private:
  // Of a PeftModel, so that the copy that a prompt encoder has beside the model is none; and of no adapter, which may
  // be called like anything.
  static bool is_weight(std::string_view name, const Tensor& tensor) {
    if (!name.starts_with(kRoot) || !name.ends_with(".weight") || tensor.rank() != 2) return false;
    for (std::string_view rest = name; !rest.empty();) {
      const std::string_view segment = take_segment(rest);
      if (segment == "modules_to_save" || is_any_parameter(segment)) return false;
    }
    return true;
  }
  static std::string_view module_of(std::string_view name) {
    std::string_view module = name.substr(0, name.rfind('.'));
    for (const std::string_view wrapper : {kWrapper, std::string_view(".token_adapter")}) {
      if (module.ends_with(wrapper)) module.remove_suffix(wrapper.size());
    }
    return module;
  }
  // The original of one that modules_to_save has in the file anyway tells that there is one.
  static std::string_view table_of(std::string_view name) {
    const std::string_view module = module_of(name), original = ".original_module";
    return module.ends_with(original) ? module.substr(0, module.size() - original.size()) : module;
  }

  std::map<std::string, Shape, std::less<>> words_, heads_;  // modules, with the shapes of their weights
};

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
      // These two carry no adapter's name.
      const auto plain = type_.kind == Kind::layers ? std::nullopt : parse_file_name(type_, name);
      if (plain) file_.insert(name, tensor);
      if (type_.kind != Kind::layers) continue;

      const auto parsed = parse_state_name(type_, name, adapter_);
      if (!parsed || !is_saved(type_, config_, parsed->parameter)) continue;
      const bool is_copy = parsed->module != "base_model" && !has_word(type_.layer, parsed->parameter);
      const bool is_token_adapter = parsed->module.ends_with(".token_adapter");  // of another type: see add_tokens
      if (is_copy || is_token_adapter) continue;
      if (parsed->module != "base_model") modules_.emplace(parsed->module);
      file_.insert(file_name(type_, *parsed), tensor);
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
  // them and is not saved: it is none of those that the configuration names.
  void add_tokens() {
    const std::string ending = ".token_adapter.trainable_tokens_delta." + adapter_;
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

  // Of other adapters, and of what modules_to_save has replaced, there is nothing here that is this adapter's.
  bool is_of_base(std::string_view name) const {
    for (std::string_view rest = name; !rest.empty();) {
      const std::string_view segment = take_segment(rest);
      if (segment == "modules_to_save" || segment == "original_module" || is_any_parameter(segment)) return false;
    }
    return true;
  }

  void add_biases() {
    const std::string bias = config_.text("bias");
    if (bias.empty() || bias == "none") return;
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
    // Before modules were wrapped, releases had the bias beside the parameters.
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
          .hint("they cannot be saved along: leave out --save-embeddings and --base-vocabulary");
    }
    const bool are_adapted = std::ranges::any_of(modules_, [](const std::string& m) { return is_embedding(m); });
    const bool has_tokens = type_.name == "TRAINABLE_TOKENS" || config_.find("trainable_token_indices") != nullptr;
    const bool is_automatic = options_.embeddings == SaveEmbeddings::automatic;
    const bool are_resized = options_.base_vocabulary != 0 && !embeddings.have_rows(options_.base_vocabulary);
    if (is_automatic && !(are_adapted && !has_tokens) && !are_resized) return;
    for (const auto& [name, tensor] : state_) {
      const bool is_wrapped = name.substr(0, name.rfind('.')).ends_with(kWrapper);
      if (embeddings.contain(name) && (is_wrapped || !are_adapted)) file_.insert(name, tensor);
    }
  }

  // Which adapters of this type there are, as somebody might have meant one of them.
  [[noreturn]] void throw_nothing() const {
    std::set<std::string> others;
    for (const auto& [name, tensor] : state_) {
      if (const auto other = adapter_in(type_, name)) others.insert(*other);
    }
    Error error(Errc::not_found, "the state dict has no tensors of an adapter " + quote(adapter_) + " of the type " +
                                     std::string(type_.name));
    if (others.empty()) throw error.hint("it is a base without an adapter, or the configuration is of another type");
    std::string names;
    for (const std::string& other : others) names += (names.empty() ? "" : ", ") + quote(other);
    throw error.hint("it has " + names + ": choose one with --name");
  }

  const AdapterConfig& config_;
  const PeftType& type_;
  std::string adapter_;
  StateDict state_, file_;
  GetAdapterOptions options_;
  std::set<std::string> modules_;  // that are adapted, in the names of the state dict
};

}  // namespace

StateDict get_adapter_state_dict(const StateDict& state, const AdapterConfig& config, std::string_view name,
                                 const GetAdapterOptions& options) {
  return Getter(state, config, name, options).get();
}

}  // namespace ballast
