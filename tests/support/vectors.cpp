#include "support/vectors.hpp"

#include <stdexcept>

#include "support/files.hpp"

namespace ballast::test {

std::string vector_path(std::string_view name) {
  const auto path = std::filesystem::path(BALLAST_SOURCE_DIR) / "tests/vectors" / name;
  if (!std::filesystem::exists(path)) throw std::runtime_error("a reference vector is missing: " + path.string());
  return path.string();
}

std::vector<std::filesystem::path> vector_files(std::string_view folder, std::string_view ending) {
  return files_in(vector_path(folder), ending);
}

}  // namespace ballast::test
