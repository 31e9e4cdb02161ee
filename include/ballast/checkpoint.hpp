// Checkpoint: a state dict with what a file says around it. A plain value; nothing in it has been read from the data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/state_dict.hpp>

namespace ballast {

// clang-format off
enum class Format : std::uint8_t {
  safetensors, torch_zip, torch_legacy, torch_tar, torchscript, pickle, gguf, npy, npz, archive,
};
// clang-format on
std::string_view name(Format format) noexcept;  // "safetensors", "torch-zip", ...

// What is worth saying and is no error: a stale index, leading spaces in a header, a skipped object.
struct Note {
  std::string where;
  std::string text;
};

struct CheckpointFile {
  std::string path;  // as it was opened
  std::uint64_t bytes;
};

using Metadata = std::map<std::string, std::string, std::less<>>;

struct Checkpoint {
  StateDict tensors;  // in the file's order, aliases last
  Metadata metadata;
  std::map<std::string, std::string, std::less<>> aliases;  // name -> the name whose tensor it shares by agreement
  std::vector<Note> notes;
  std::vector<CheckpointFile> files;
  std::string target;  // what was opened
  Format format = Format::safetensors;
  std::uint64_t shards = 1;

  std::size_t size() const noexcept { return tensors.size(); }
  auto begin() const noexcept { return tensors.begin(); }
  auto end() const noexcept { return tensors.end(); }
  bool contains(std::string_view name) const noexcept { return tensors.contains(name); }
  const Tensor* find(std::string_view name) const noexcept { return tensors.find(name); }
  const Tensor& at(std::string_view name) const { return tensors.at(name); }
};

}  // namespace ballast
