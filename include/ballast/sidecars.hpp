// Sidecars: the files beside the weights that belong to a model: its configuration, tokenizer, templates, card,
// licence.
//
// A model that is written into another folder needs them there. They are copied byte for byte, but for config.json,
// which is corrected where it would say something about the weights that is no longer true.
//
// The functions may be called from several threads at once. They list the folder and read the small configurations;
// the other files are read when the plan is carried out, in bounded memory. A plan keeps the sources of the files
// alive.
//
// Example:
//   const Checkpoint model = open("model/"), half = cast(model, DType::f16);
//   SavePlan plan = plan_save(half, "half/");
//   add_sidecars(plan, find_sidecars(model), model, half);
//   execute(plan);
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>
#include <ballast/save_plan.hpp>

namespace ballast {

struct Sidecar {
  std::string name;  // in the folder: "config.json", "1_Pooling/config.json"
  SourcePtr source;
};

struct Sidecars {
  std::vector<Sidecar> files;     // sorted by name
  std::vector<std::string> left;  // what else is in the folder, and is neither the weights nor hidden
  std::vector<Note> notes;        // files that are not taken, and why: a link that leads out of the folder, a huge file
};

// The files beside a checkpoint that was opened as a folder: a local one, one of the Hub's cache, or one of the Hub.
// None if anything else was opened. Never weights, indexes, hidden files, or files behind links that lead out of the
// folder. Code is taken only if a configuration names it (auto_map). `options` are those that the checkpoint was opened
// with.
Sidecars find_sidecars(const Checkpoint& model, const OpenOptions& options = {});

// Adds the files to what is written, in the folder of the first file; files of a name that the plan has already are
// left out. `model` is the checkpoint as it was opened, and `written` that which the plan was made of. If most bytes of
// its floating tensors have another dtype, so has config.json (torch_dtype, dtype); if no quantized weights are left,
// neither is quantization_config. All else in config.json stays as it was, to the byte; so does a config.json that is
// no JSON, with a note. If the model lies in the folder that is written to, only a config.json that changes is written.
//
// A name that leads out of the folder is Errc::unsafe. Notes of the plan say which files are taken along, which are
// not, and what does not fit any more.
void add_sidecars(SavePlan& plan, Sidecars sidecars, const Checkpoint& model, const Checkpoint& written);

}  // namespace ballast
