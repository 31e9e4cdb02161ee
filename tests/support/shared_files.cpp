#include "support/shared_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ballast::test {

std::filesystem::path shared_folder() {
  const char* given = std::getenv("BALLAST_SHARED");
  return given != nullptr ? std::filesystem::path(given)
                          : std::filesystem::path(BALLAST_SOURCE_DIR).parent_path() / "shared";
}

std::string shared_path(std::string_view name) { return (shared_folder() / name).string(); }

std::string read_whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> shared_files(std::string_view folder, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder() / folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ballast::test
