// The fixtures are other people's files. They are not in the repository but beside it, in ../shared/fixtures (or in
// fixtures/ of the folder that BALLAST_SHARED names). A test that needs fixtures says so first. If the fixtures are
// missing, the test is skipped with a message; if BALLAST_REQUIRE_SHARED is set, it fails.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

// A file or a folder: fixture_path("benign").
std::string fixture_path(std::string_view name);

// The files whose names end in `ending`, sorted. Throws if there is none.
std::vector<std::filesystem::path> fixture_files(std::string_view folder, std::string_view ending);

bool are_fixtures_required();

}  // namespace ballast::test

#define SKIP_WITHOUT_FIXTURES(folder)                                                                             \
  if (const std::string absent = ::ballast::test::fixture_path(folder); !std::filesystem::is_directory(absent)) { \
    if (::ballast::test::are_fixtures_required()) FAIL() << "the fixtures are not there: " << absent;             \
    GTEST_SKIP() << "the fixtures are not there: " << absent;                                                     \
  }
