// Adapter: what PEFT saves of a fine-tuned model: a configuration, and tensors named after those of the base.
//
// Everything is lazy: tensors are views of the files that they came from, and nothing is read before it is saved. The
// functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/device.hpp>
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>
#include <ballast/names.hpp>
#include <ballast/save.hpp>
#include <ballast/state_dict.hpp>
#include <ballast/transform.hpp>

namespace ballast {

// adapter_config.json: every field as it stands in the file, known or not.
struct AdapterConfig {
  Json fields;

  static AdapterConfig parse(std::string_view text);  // throws Errc::malformed

  std::string peft_type() const;                   // "LORA"; throws Errc::malformed where it is missing
  const Json* find(std::string_view field) const;  // nothing where it is missing, and where it is null
  bool is_set(std::string_view field) const;       // whether it is true; Errc::malformed where it is neither
  std::string text(std::string_view field) const;  // empty where it is missing; Errc::malformed where it is no string
  double number(std::string_view field, double otherwise) const;  // Errc::malformed where it is no number
};

// As PEFT writes it: json.dumps(indent=2, sort_keys=True).
std::string to_string(const AdapterConfig& config);

// Of a LoRA: r and lora_alpha at a module ("model.layers.0.self_attn.q_proj", without "base_model.model."), where the
// first pattern of rank_pattern and alpha_pattern that matches counts; and the factor of B·A, alpha / r, or with rslora
// alpha / √r. Errc::malformed where that is not a number.
double lora_rank(const AdapterConfig& config, std::string_view module);
double lora_alpha(const AdapterConfig& config, std::string_view module);
double lora_scaling(const AdapterConfig& config, std::string_view module);

// Whose names and shapes a file has.
enum class AdapterDialect : std::uint8_t { peft, diffusers, kohya, gguf, mlx };
std::string_view name(AdapterDialect dialect) noexcept;  // "peft", ...

struct Adapter {
  AdapterConfig config;
  StateDict tensors;     // as PEFT's files call them: "base_model.model.layers.0.q_proj.lora_A.weight"
  std::string source{};  // what it was loaded from, for messages
  AdapterDialect dialect = AdapterDialect::peft;  // of the source; here everything is as PEFT has it
  Metadata metadata{};                            // of the source: of GGUF, its fields as text
  std::vector<Note> notes{};                      // what the source left open
  std::vector<CheckpointFile> files{};
};

// An adapter_config.json. Its path is in every error.
AdapterConfig load_adapter_config(const std::string& path);

struct AdapterLoadOptions {
  Device device{};          // where the tensors are to be; on the cpu they are views of the file
  std::string subfolder{};  // of the folder, where several adapters lie in one
  // Over names without "base_model.model.", which is put back: the first rule that matches counts.
  std::vector<RenameRule> key_mapping{};
  // The same adapter before its training, which is subtracted: see subtract_initial().
  std::string initial_adapter{};
  NameOptions names{};                    // of GGUF: what the file does not say of the base
  std::vector<std::string> base_names{};  // of kohya: the base's tensors, by which flat names are told apart
  Safety safety = Safety::inert;
  bool allow_dangerous = false;  // go on with a pickle that names something dangerous
  Limits limits{};
};

// A folder with adapter_config.json and adapter_model.safetensors or, where there is none, adapter_model.bin; or one
// file of any dialect. Names without "base_model.model." get it. A configuration that is not there is deduced from the
// tensors, with a note of what is only likely. Errc::not_found where there are no weights.
Adapter load_adapter(const std::string& path, const AdapterLoadOptions& options = {});

// PiSSA, OLoRA, CorDA and LoRA-GA ("init_lora_weights") begin by taking a part of the base's weights out of them, so
// that what they train does not belong to the base as it was: merge() and set_adapter_state_dict() refuse it. With the
// adapter as it was before training, this is the same change as a LoRA of that base, of twice the rank, as PEFT's
// path_initial_model_for_weight_conversion makes it. Lazy. Errc::mismatch where the two are not one adapter at two
// times, Errc::unsupported where the base was changed in another way (LoftQ, KaSA).
Adapter subtract_initial(Adapter trained, const Adapter& initial);

// Whether the embeddings of the base go into the file of an adapter.
enum class SaveEmbeddings : std::uint8_t {
  automatic,  // where the adapter changes them, or where their number is not base_vocabulary
  always,
  never,
};

struct GetAdapterOptions {
  SaveEmbeddings embeddings = SaveEmbeddings::automatic;
  std::uint64_t base_vocabulary = 0;  // rows of the embeddings that the base had before training; 0 is unknown
};

// Of the state dict of an adapted model, what the file of the adapter `name` holds: its own tensors, whatever else is
// called like it, under the names that files have. Views of the state; what a type of adapter computes on the way is
// computed when it is read. Errc::not_found where there is no such adapter.
StateDict get_adapter_state_dict(const StateDict& state, const AdapterConfig& config, std::string_view name = "default",
                                 const GetAdapterOptions& options = {});

struct SetAdapterOptions {
  bool ignore_mismatched_sizes = false;  // leave out what does not fit, instead of Errc::mismatch
};

struct SetAdapterResult {
  StateDict state;
  std::vector<std::string> missing;     // names in the state that the adapter should have had a tensor for
  std::vector<std::string> unexpected;  // names in the adapter that the state has no place for
  std::vector<std::string> mismatched;  // names in the state that the adapter has in another shape; missing, too
};

// The other way: a base, or an already adapted model, with this adapter in it under `name`. Modules that the adapter
// changes are wrapped as PEFT wraps them ("q_proj.weight" becomes "q_proj.base_layer.weight"), as the adapter's own
// names and its configuration tell. Errc::mismatch where nothing of the adapter has a place in the state.
SetAdapterResult set_adapter_state_dict(const StateDict& state, const StateDict& adapter, const AdapterConfig& config,
                                        std::string_view name = "default", const SetAdapterOptions& options = {});

// What is wrong with an adapter, and what to do about it.
struct AdapterProblem {
  Errc code;
  std::string text, hint;
  bool is_harmless = false;  // it works, but hardly as somebody meant it
};
std::vector<AdapterProblem> find_problems(const Adapter& adapter);

// Throws the first that is not harmless.
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
  std::string type;                         // "LORA"; empty where there may be several
  std::vector<std::string> possible_types;  // those; else only that one
  std::string base_model;
  std::vector<Module> modules;           // that are adapted, in natural order
  std::vector<std::string> saved_whole;  // modules that the file replaces
  std::vector<Scale> scales;             // of a LoRA, those of most modules first
  std::vector<DType> dtypes;             // those of most tensors first
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;
};
AdapterSummary summarize(const Adapter& adapter);

struct AdapterSaveOptions {
  AdapterDialect dialect = AdapterDialect::peft;
  bool portable = false;  // names without "base_model.model."
  NameOptions names{};    // for GGUF: what the configuration does not say of the base
  SaveOptions save{};
};

// As PEFT saves it: a folder, which execute() needs to be there, with adapter_config.json and
// adapter_model.safetensors. As any other dialect has it: a file. There, the scaling of every module is what it was:
// folded into what the dialect can say, or into B. Errc::unsupported for what it has no place for.
SavePlan plan_save(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options = {});

// Makes the folder where it is not there.
SaveReport save_adapter(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options = {});

}  // namespace ballast
