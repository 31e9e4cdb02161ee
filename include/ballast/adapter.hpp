// Adapter: the part of a fine-tuned model that PEFT saves: a configuration, and tensors named after those of the base.
//
// Everything is lazy: tensors are views of the files that they came from, and nothing is read before it is saved. An
// Adapter is a value: its tensors share the storages behind them and keep these alive. Several threads may read one
// while nobody changes it, and the functions may be called from several threads at once.
//
// Example:
//   const Adapter adapter = load_adapter("lora");
//   save_adapter(adapter, "lora-kohya.safetensors", {.dialect = AdapterDialect::kohya});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/device.hpp>
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/names.hpp>
#include <ballast/open_options.hpp>
#include <ballast/save.hpp>
#include <ballast/state_dict.hpp>
#include <ballast/transform.hpp>

namespace ballast {

// adapter_config.json: every field as it stands in the file, known or not.
struct AdapterConfig {
  Json fields;

  static AdapterConfig parse(std::string_view text);  // throws Errc::malformed

  std::string peft_type() const;                   // "LORA"; throws Errc::malformed if it is missing
  const Json* find(std::string_view field) const;  // null if the field is missing, and if it is null in the file

  // A field as the type that it must have; `otherwise` if it is missing or null. Errc::malformed, with the name of the
  // field, if it has another type.
  bool is_set(std::string_view field, bool otherwise = false) const;
  std::string text(std::string_view field, std::string_view otherwise = {}) const;
  double number(std::string_view field, double otherwise) const;  // must be finite
  std::uint64_t count(std::string_view field, std::uint64_t otherwise) const;
  std::vector<std::string> words(std::string_view field) const;  // a list of strings and integers, or one alone
};

// As PEFT writes it: json.dumps(indent=2, sort_keys=True).
std::string to_string(const AdapterConfig& config);

// r and lora_alpha of a LoRA at a module ("model.layers.0.self_attn.q_proj", without "base_model.model."): the first
// pattern of rank_pattern and alpha_pattern that matches the module counts, and PEFT's default, 8, if the configuration
// says nothing. lora_scaling() is the factor of B·A: alpha / r, or with rslora alpha / √r. Errc::malformed if that is
// not a number.
double lora_rank(const AdapterConfig& config, std::string_view module);
double lora_alpha(const AdapterConfig& config, std::string_view module);
double lora_scaling(const AdapterConfig& config, std::string_view module);

// The program or library whose names and shapes a file has.
enum class AdapterDialect : std::uint8_t { peft, diffusers, kohya, gguf, mlx };
std::string_view name(AdapterDialect dialect) noexcept;  // "peft", ...

struct Adapter {
  AdapterConfig config;
  StateDict tensors;     // as PEFT's files call them: "base_model.model.layers.0.q_proj.lora_A.weight"
  std::string source{};  // the file or folder that it was loaded from, for messages
  AdapterDialect dialect = AdapterDialect::peft;  // of the source; the tensors here are as PEFT has them
  Metadata metadata{};                            // of the source; the metadata of a GGUF are here as text
  std::vector<Note> notes{};                      // about what the source does not say
  std::vector<CheckpointFile> files{};
};

// An adapter_config.json. Every error has its path.
AdapterConfig load_adapter_config(const std::string& path);

struct AdapterLoadOptions {
  Device device{};          // where the tensors are to be; on the cpu they are views of the file
  std::string subfolder{};  // of the folder, if several adapters lie in it
  // Rules for names without "base_model.model.", which is put back. The first rule that matches a name counts.
  std::vector<RenameRule> key_mapping{};
  // The same adapter before its training, which is subtracted: see subtract_initial().
  std::string initial_adapter{};
  NameOptions names{};                    // for a GGUF: what the file does not say about the base
  std::vector<std::string> base_names{};  // for kohya: names of the base's tensors, which tell where dots were
  bool allow_dangerous = false;           // accept a pickle that names something dangerous
  // How the weights are opened; the configuration is found through its `files`. It stands last: see LoadOptions.
  OpenOptions open{};
};

// `options` completed with what the base says: its names, as Hugging Face has them, and a GGUF's architecture and
// heads.
AdapterLoadOptions for_base(const Checkpoint& base, AdapterLoadOptions options = {});

// A folder with adapter_config.json and adapter_model.safetensors or, if there is none, adapter_model.bin; or one file
// of any dialect. Names without "base_model.model." get it. A configuration that is missing is deduced from the
// tensors, with a note of what is only likely. Errc::not_found if there are no weights.
Adapter load_adapter(const std::string& path, const AdapterLoadOptions& options = {});

// PiSSA, OLoRA, CorDA and LoRA-GA ("init_lora_weights") begin by moving a part of the base's weights into the adapter,
// so the trained adapter does not belong to the base as it was: merge() and set_adapter_state_dict() refuse it.
// Together with the adapter as it was before training, it gives a LoRA of that base, of twice the rank, as PEFT's
// path_initial_model_for_weight_conversion makes it. Lazy. Errc::mismatch if the two are not one adapter at two times,
// Errc::unsupported if the base was changed in another way (LoftQ, KaSA).
Adapter subtract_initial(Adapter trained, const Adapter& initial);

// Whether the embeddings of the base go into the file of an adapter.
enum class SaveEmbeddings : std::uint8_t {
  automatic,  // if the adapter changes them, or if their number is not base_vocabulary
  always,
  never,
};

struct GetAdapterOptions {
  SaveEmbeddings embeddings = SaveEmbeddings::automatic;
  std::uint64_t base_vocabulary = 0;  // rows of the embeddings that the base had before training; 0 is unknown
  bool allow_dangerous = false;       // extract_adapter() accepts a pickle that names something dangerous
};

// The part of an adapted model's state dict that the file of the adapter `name` holds: exactly this adapter's tensors,
// under the names that files have. They are views of the state; values that a type of adapter computes are computed
// when they are read. Errc::not_found if there is no such adapter.
StateDict get_adapter_state_dict(const StateDict& state, const AdapterConfig& config, std::string_view name = "default",
                                 const GetAdapterOptions& options = {});

// The same from a checkpoint, to be saved.
Adapter extract_adapter(const Checkpoint& model, const AdapterConfig& config, std::string_view name = "default",
                        const GetAdapterOptions& options = {});

struct SetAdapterOptions {
  bool ignore_mismatched_sizes = false;  // leave out tensors that do not fit, instead of Errc::mismatch
  NameOptions names{};                   // for inject_adapter() into a GGUF: what the file does not say
};

struct SetAdapterResult {
  StateDict state;
  std::vector<std::string> missing;     // names in the state that the adapter should have had a tensor for
  std::vector<std::string> unexpected;  // names in the adapter that the state has no tensor for
  std::vector<std::string> mismatched;  // names in the state that the adapter has in another shape; missing, too
};

// The other way: a base, or an already adapted model, with this adapter in it under `name`. Modules that the adapter
// changes are wrapped as PEFT wraps them ("q_proj.weight" becomes "q_proj.base_layer.weight"), as the adapter's own
// names and its configuration tell. Errc::mismatch if no tensor of the adapter belongs anywhere in the state.
SetAdapterResult set_adapter_state_dict(const StateDict& state, const StateDict& adapter, const AdapterConfig& config,
                                        std::string_view name = "default", const SetAdapterOptions& options = {});

struct InjectedAdapter {
  Checkpoint model;                                          // with notes about what it does not keep of the base
  std::vector<std::string> missing, unexpected, mismatched;  // as in SetAdapterResult
};

// Does the same to a checkpoint, to be saved. A GGUF with llama.cpp's names gets those of Hugging Face, which a
// PeftModel has. Throws what check_adapter() throws.
InjectedAdapter inject_adapter(Checkpoint base, const Adapter& adapter, std::string_view name = "default",
                               const SetAdapterOptions& options = {});

// A fault of an adapter, and what to do about it.
struct AdapterProblem {
  Errc code;
  std::string text;
  Advice hint;
  bool is_harmless = false;  // the adapter works, but probably not as it was meant
};
std::vector<AdapterProblem> find_problems(const Adapter& adapter);

// Throws the first problem that is not harmless.
void check_adapter(const Adapter& adapter);

struct AdapterSummary {
  struct Module {
    std::string name;  // the last part of the modules' names: "q_proj"
    std::uint64_t count = 0;
  };
  struct Scale {
    double rank = 0, alpha = 0, scaling = 0;
    std::uint64_t modules = 0;
  };
  std::string type;                         // "LORA"; empty if it may be one of several
  std::vector<std::string> possible_types;  // all candidates; only `type` if it is known
  std::vector<std::string> variants;        // of a LoRA: "DoRA", "aLoRA"; PEFT allows one
  std::string base_model;
  std::vector<Module> modules;           // modules that are adapted, in natural order
  std::vector<std::string> saved_whole;  // modules that the file replaces
  std::vector<Scale> scales;             // of a LoRA, those of most modules first
  std::vector<DType> dtypes;             // those of most tensors first
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;
  std::string formula;         // what merge() makes of a weight W
  std::string why_not_merged;  // or the reason why merge() refuses such an adapter
};
AdapterSummary summarize(const Adapter& adapter);

struct AdapterSaveOptions {
  AdapterDialect dialect = AdapterDialect::peft;
  bool portable = false;  // names without "base_model.model."
  NameOptions names{};    // for a GGUF: what the configuration does not say about the base
  SaveOptions save{};
};

// PEFT's own dialect is a folder, which must exist before execute(), with adapter_config.json and
// adapter_model.safetensors. Any other dialect is a file, and the scaling of every module stays what it was: the file
// says it in the way of the dialect, or it is multiplied into B. Errc::unsupported for what the dialect cannot hold.
SavePlan plan_save(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options = {});

// Makes the folder if it is not there.
SaveReport save_adapter(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options = {});

}  // namespace ballast
