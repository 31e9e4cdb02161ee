// What the name of a model says: "Llama-3.1-8B-Instruct" is a basename, a version, a size and a fine-tuning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast::llamacpp {

struct ModelNameParts {
  std::optional<std::string> name;          // all of it, without the organization
  std::optional<std::string> organization;  // "meta-llama" of "meta-llama/Llama-3.1-8B-Instruct"
  std::optional<std::string> basename, finetune, version, size_label;
};

// A size that is far from the number of parameters is taken for something else, say a length of texts, and becomes part
// of the fine-tuning.
ModelNameParts split_model_name(std::string_view id, std::uint64_t parameters);

// "gemma-3-1b-it" becomes "Gemma 3 1b It": words of small letters begin with a large one, versions stay.
std::string title_of_id(std::string_view id);

// 8030261248 becomes "8.0B".
std::string rounded_parameter_count(std::uint64_t count);

}  // namespace ballast::llamacpp
