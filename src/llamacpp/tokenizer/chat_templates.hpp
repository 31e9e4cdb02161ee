// The chat templates of a folder: in tokenizer_config.json, or in files beside it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ballast/typed_metadata.hpp>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct ChatTemplates {
  std::string plain;                                       // empty if there is none
  std::vector<std::pair<std::string, std::string>> named;  // in the folder's order; a name may stand here twice

  void write(TypedMetadata& out) const;
};

ChatTemplates read_chat_templates(const TokenizerFiles& files);

}  // namespace ballast::llamacpp
