#include "checkpoint/subfolders.hpp"

#include <system_error>

namespace ballast {

namespace fs = std::filesystem;

Subfolders::Subfolders(const SavePlan& plan) {
  if (plan.files.empty()) return;
  const fs::path folder = fs::path(plan.files.front().path).parent_path();
  for (const SavePlan::File& file : plan.files) {
    const fs::path needed = fs::path(file.path).parent_path();
    std::error_code ignored;  // whoever writes the file has a better message
    if (needed != folder && needed.parent_path() == folder && fs::create_directory(needed, ignored))
      made_.push_back(needed);
  }
}

Subfolders::~Subfolders() {
  std::error_code ignored;
  for (const fs::path& folder : made_) fs::remove(folder, ignored);
}

}  // namespace ballast
