// A model's folder for a test: files by their names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "builders/temp_dir.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::test {

class ModelFiles {
 public:
  explicit ModelFiles(std::string_view config = {}, std::string_view folder_name = "Model") : name_(folder_name) {
    std::filesystem::create_directories(dir_ / name_);
    if (!config.empty()) write("config.json", config);
  }

  ModelFiles& write(const std::string& file, std::string_view content) {
    const std::filesystem::path path = name_ + "/" + file;
    std::filesystem::create_directories(dir_ / path.parent_path().string());
    dir_.write(path.string(), content);
    return *this;
  }

  llamacpp::ModelFolder folder() const { return {dir_ / name_, OpenOptions()}; }

 private:
  TempDir dir_;
  std::string name_;
};

}  // namespace ballast::test
