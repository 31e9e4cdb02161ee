// The reference vectors, in tests/vectors: files that reference programs wrote, and what those programs say about them.
// tests/vectors/README.md says how each vector was made. The vectors are a part of the repository, so a test fails if
// one is missing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::test {

// The path of a file or a folder: vector_path("gguf/kv_all.gguf"). Throws if it does not exist.
std::string vector_path(std::string_view name);

// The files whose names end in `ending`, sorted. Throws if there is none.
std::vector<std::filesystem::path> vector_files(std::string_view folder, std::string_view ending);

}  // namespace ballast::test
