// What must be done to the tensors of some models before they get llama.cpp's names: tensors that are there twice, or
// that say nothing, rows that belong to no token or position.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// `tokenizer` are the model's tokenizer.* metadata. The names are those of Hugging Face, before and after. What is left
// out is left out with a note. Some biases, and the head of a mamba, are read and compared.
Checkpoint prepare(Checkpoint checkpoint, const ModelFolder& folder, const Json& config, std::string_view class_name,
                   std::string_view architecture, const TypedMetadata& tokenizer);

// A reranker answers yes or no: cls.output.weight are the rows of these two words. The names are those of llama.cpp.
void add_answers(Checkpoint& checkpoint, const TypedMetadata& tokenizer);

}  // namespace ballast::llamacpp
