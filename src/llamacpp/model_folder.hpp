// ModelFolder: what lies beside the weights of a model, as Hugging Face's libraries write it: config.json, a tokenizer,
// a model card.
//
// Every file is read when it is asked for. A file that is there and cannot be read is an error with its name; so is one
// that is larger than any such file of a real model (Errc::limit).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/json.hpp>
#include <ballast/open_options.hpp>

#include "core/padded_text.hpp"

namespace ballast::llamacpp {

class ModelFolder {
 public:
  // `target` is the folder, or a file in it.
  ModelFolder(std::string target, const OpenOptions& options);

  // The last component of the folder's own name: "Llama-3-8B". Empty if it has none.
  const std::string& name() const noexcept { return name_; }
  // The name of a file in the folder, for messages. `file` may have a folder before it: "1_Pooling/config.json".
  // Errc::unsafe if it leads out of the folder.
  std::string path(const std::string& file) const;
  // Whether a link on the way to the file leads out of the folder. One to where the Hub's cache keeps it does not.
  bool leads_out(const std::string& file) const;

  bool has(const std::string& file) const;
  // Each is nothing if there is no such file. A text is UTF-8, else Errc::malformed; a model card, which is for people,
  // may be anything, and is cut if it is too long.
  std::optional<std::string> bytes(const std::string& file) const;
  std::optional<std::string> text(const std::string& file) const;
  std::optional<PaddedText> padded(const std::string& file) const;  // to be read as JSON
  std::optional<Json> json(const std::string& file) const;
  std::vector<std::string> list(const std::string& folder) const;  // the names in a folder in it, sorted

 private:
  struct Found {
    SourcePtr source;
    std::size_t size;
    bool is_cut;
  };
  std::optional<Found> find(const std::string& file) const;

  FilesPtr files_;
  Limits limits_;
  std::string folder_, name_;
  bool is_folder_;
  bool is_somewhere_;  // false for standard input and memory, which have nothing beside them
};

}  // namespace ballast::llamacpp
