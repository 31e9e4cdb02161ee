// open: opens any checkpoint, told apart by its content. It reads the header and nothing else.
//
// The functions may be called from several threads at once. The checkpoint that they return owns its tensors, which own
// the sources of their bytes. A file costs a handful of reads, whatever its size (docs/architecture.md counts them);
// shards are opened in parallel.
//
// Example:
//   const Checkpoint checkpoint = open("model.safetensors");
//   for (const auto& [name, tensor] : checkpoint) std::cout << name << " " << to_string(tensor.shape()) << "\n";
//   const std::vector<float> row = checkpoint.at("norm.weight").values<float>();
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>
#include <ballast/source.hpp>

namespace ballast {

// A file, an ...index.json, or a folder with either; a pipeline of diffusers, whose parts are roots (see
// OpenOptions::root); or a repository in the Hub's cache, models--ORG--NAME, whose snapshot of main is opened.
Checkpoint open(const std::string& target, const OpenOptions& options = {});

// The targets to choose from if open() refuses a folder with Errc::invalid_argument because several checkpoints could
// be meant. Empty if the target is no folder.
std::vector<std::string> choices_in(const std::string& folder, const OpenOptions& options = {});

// One file, whatever it is called: not an index, and not a set of shards. To open those, give their names and
// OpenOptions::files.
Checkpoint open(SourcePtr source, const OpenOptions& options = {});

// A whole file that is already in memory.
Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name = "<memory>",
                      const OpenOptions& options = {});

}  // namespace ballast
