// Files that tests read: the bytes of a file, and the files in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

// Throws if the file cannot be opened, and so fails the test.
std::string read_whole_file(const std::filesystem::path& path);

// The files whose names end in `ending`, sorted. Throws if there is none: a loop over nothing would pass.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, std::string_view ending);

}  // namespace ballast::test
