// The shortest ways to read a GGUF file in a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builders/gguf_file.hpp"
#include "formats/gguf/split.hpp"

namespace ballast::test {

inline SourcePtr source_of(std::string_view text, const std::string& name = "file.gguf") {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()}, name);
}

inline std::string part_path(const std::string& stem, std::uint64_t number, std::uint64_t count) {
  return ShardName{stem, number, count, ".gguf"}.text();
}

inline gguf::GgufFile open_set(const std::string& path, const gguf::ReadOptions& options = {}) {
  return gguf::read_set(file_source(path), *local_files(), options);
}

inline gguf::GgufFile read_gguf(const GgufBuilder& file, const gguf::ReadOptions& options = {}) {
  return gguf::read(source_of(file.text()), options);
}

}  // namespace ballast::test
