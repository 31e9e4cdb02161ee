// The shortest ways to read a GGUF file in a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builders/gguf_file.hpp"
#include "formats/gguf/reader.hpp"

namespace ballast::test {

inline io::ByteSourcePtr source_of(std::string_view text, const std::string& name = "file.gguf") {
  const auto bytes = std::as_bytes(std::span(text));
  return io::from_memory({bytes.begin(), bytes.end()}, name);
}

inline gguf::GgufFile read_gguf(const GgufBuilder& file, const gguf::ReadOptions& options = {}) {
  return gguf::read(source_of(file.text()), options);
}

}  // namespace ballast::test
