// open: any checkpoint, told apart by its content. Reads the header and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

struct OpenOptions {
  Limits limits{};
  Safety safety = Safety::inert;
  std::string root{};    // a subtree of a nested checkpoint ("state_dict"); its prefix is dropped
  bool single = false;   // of a split GGUF, only the part that was named
  bool lenient = false;  // forgive what real files are known to get wrong (trailing bytes), with a note for each
  unsigned threads = 0;  // for many shards; 0 is one a core
};

// A file, an ...index.json, or a folder with either.
Checkpoint open(const std::string& target, const OpenOptions& options = {});

// A whole file that is already in memory.
Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name = "<memory>",
                      const OpenOptions& options = {});

}  // namespace ballast
