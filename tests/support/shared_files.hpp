// Files that stand beside the repository and not in it: reference vectors and real checkpoints, in ../shared (or where
// BALLAST_SHARED says). Tests that need them say that they were skipped where they are not there.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

std::filesystem::path shared_folder();

std::string shared_path(std::string_view name);

std::string read_whole_file(const std::filesystem::path& path);

// Sorted. Only files, whose names end so.
std::vector<std::filesystem::path> shared_files(std::string_view folder, std::string_view ending);

}  // namespace ballast::test

#define SKIP_WITHOUT_SHARED(folder)                                         \
  if (!std::filesystem::is_directory(::ballast::test::shared_path(folder))) \
  GTEST_SKIP() << "the shared files are not there: " << ::ballast::test::shared_path(folder)
