// Files that stand beside the repository and not in it: reference vectors and real checkpoints, in ../shared (or where
// BALLAST_SHARED says). Tests that need them say that they were skipped where they are not there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

inline std::filesystem::path shared_folder() {
  const char* given = std::getenv("BALLAST_SHARED");
  return given != nullptr ? std::filesystem::path(given)
                          : std::filesystem::path(BALLAST_SOURCE_DIR).parent_path() / "shared";
}

inline std::string shared_path(std::string_view name) { return (shared_folder() / name).string(); }

inline std::string read_whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Sorted. Only files, whose names end so.
inline std::vector<std::filesystem::path> shared_files(std::string_view folder, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(shared_folder() / folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ballast::test

#define SKIP_WITHOUT_SHARED(folder)                                         \
  if (!std::filesystem::is_directory(::ballast::test::shared_path(folder))) \
  GTEST_SKIP() << "the shared files are not there: " << ::ballast::test::shared_path(folder)
