// Subfolders: the folders that the files of a plan need inside the folder of its first file.
#pragma once

#include <filesystem>
#include <vector>

#include <ballast/save_plan.hpp>

namespace ballast {

// Makes them, and removes those that it made unless keep() is called: they are empty then.
class Subfolders {
 public:
  explicit Subfolders(const SavePlan& plan);
  ~Subfolders();
  Subfolders(const Subfolders&) = delete;
  Subfolders& operator=(const Subfolders&) = delete;

  void keep() noexcept { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace ballast
