// The chat templates of a folder: in tokenizer_config.json, or in files beside it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {

struct ChatTemplates {
  std::string plain;                                       // empty if there is none
  std::vector<std::pair<std::string, std::string>> named;  // in the folder's order; a name may stand here twice

  void write(TypedMetadata& out) const;
};

// Errc::malformed for a file that is not UTF-8. A file that lies elsewhere gets a note: its text goes into the GGUF.
ChatTemplates read_chat_templates(const TokenizerFiles& files, std::vector<Note>& notes);

// A file with a template, as Python reads it; nothing if there is none.
std::optional<std::string> read_template_file(const ModelFolder& folder, const std::string& file,
                                              std::vector<Note>& notes);

}  // namespace ballast::llamacpp
