// What convert does for llama.cpp: a model's folder becomes a GGUF that runs, and a GGUF another one of smaller types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/save_plan.hpp>

#include "arguments.hpp"
#include "session.hpp"

namespace ballast::cli {

struct GgufFlags {
  std::optional<std::string> type;
  std::string imatrix, output_tensor_type, token_embedding_type, pre_tokenizer;
  std::vector<std::string> tensor_types, include_weights, exclude_weights;
  bool pure = false, leave_output_tensor = false, allow_requantize = false;

  bool has_type() const { return type.has_value(); }
};

// All but --type.
void add_gguf_options(Command& verb, GgufFlags& flags);

// Whether the input becomes a whole model for llama.cpp: it is asked for with --type, or the input is the folder of a
// model whose architecture is known, and `names` (of --names) does not say otherwise. Throws Errc::invalid_argument for
// --type with an output that is no GGUF, with names of Hugging Face, and if nothing tells what model it is. If the
// class of a folder's model is not known, that is a note.
bool makes_gguf_model(const Session& session, const GgufFlags& flags, const Checkpoint& input, const std::string& out,
                      const std::string& names);

Checkpoint as_gguf_model(const Session& session, const GgufFlags& flags, Checkpoint input);

// The types that --type gives; without it, those of "auto".
Checkpoint with_types(const Session& session, const GgufFlags& flags, Checkpoint model);

// The type of every tensor, and what a weight costs, for a dry run.
void show_types(Session& session, const SavePlan& plan);

}  // namespace ballast::cli
