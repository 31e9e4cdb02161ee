#include "support/files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ballast::test {

std::string read_whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, std::string_view ending) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
  }
  if (files.empty()) throw std::runtime_error("no file *" + std::string(ending) + " in " + folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ballast::test
