#include "support/fixtures.hpp"

#include <cstdlib>

#include "support/files.hpp"

namespace ballast::test {

std::string fixture_path(std::string_view name) {
  const char* given = std::getenv("BALLAST_SHARED");
  const auto shared = given != nullptr ? std::filesystem::path(given)
                                       : std::filesystem::path(BALLAST_SOURCE_DIR).parent_path() / "shared";
  return (shared / "fixtures" / name).string();
}

std::vector<std::filesystem::path> fixture_files(std::string_view folder, std::string_view ending) {
  return files_in(fixture_path(folder), ending);
}

bool are_fixtures_required() { return std::getenv("BALLAST_REQUIRE_SHARED") != nullptr; }

}  // namespace ballast::test
