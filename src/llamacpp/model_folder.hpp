// ModelFolder: what lies beside the weights of a model, as Hugging Face's libraries write it: config.json, a tokenizer,
// a model card.
//
// Every file is read when it is asked for. A file that is there and cannot be read is an error with its name.
#pragma once

#include <optional>
#include <string>

#include <ballast/json.hpp>
#include <ballast/open_options.hpp>

namespace ballast::llamacpp {

class ModelFolder {
 public:
  // `target` is the folder, or a file in it.
  ModelFolder(std::string target, const OpenOptions& options);

  // The last component of the folder's own name: "Llama-3-8B". Empty if it has none.
  const std::string& name() const noexcept { return name_; }
  // The name of a file in the folder, for messages. `file` may have a folder before it: "1_Pooling/config.json".
  std::string path(const std::string& file) const;

  bool has(const std::string& file) const;
  std::optional<std::string> text(const std::string& file) const;  // nothing if there is no such file
  std::optional<Json> json(const std::string& file) const;
  std::vector<std::string> list(const std::string& folder) const;  // the names in a folder in it, sorted

 private:
  FilesPtr files_;
  Limits limits_;
  std::string folder_, name_;
  bool is_folder_;
};

}  // namespace ballast::llamacpp
