// load: opens any checkpoint and brings its tensors to the devices where they are wanted, in one call.
//
// The functions may be called from several threads at once. The tensors that they return own their memory, or share the
// file's storage and keep it alive.
//
// Example:
//   const StateDict state = load("pytorch_model.bin", {.open = {.root = "state_dict"}});
//   save(state, "model.safetensors");
#pragma once

#include <string>
#include <vector>

#include <ballast/device.hpp>
#include <ballast/open.hpp>
#include <ballast/progress.hpp>
#include <ballast/state_dict.hpp>

namespace ballast {

struct LoadOptions {
  Device device{};
  std::vector<DeviceRule> map_location{};  // the first pattern that matches a name decides; `device` if none matches
  LoadMode mode = LoadMode::mapped;        // for tensors on the cpu; mapped: views of the file, as open() gives them
  bool allow_dangerous = false;            // go on with a checkpoint that names something dangerous
  Progress progress{};                     // counts the bytes that are read
  // How the target is opened; its `threads` read, too. It stands last, since GCC 12 destroys a struct inside a struct
  // twice if something behind it throws, as a Device does.
  OpenOptions open{};
};

// Throws Errc::unsafe if the checkpoint names something dangerous.
StateDict load(const std::string& target, const LoadOptions& options = {});

struct RealizeOptions {
  unsigned threads = 0;
  Progress progress{};
};

// The same tensors in memory of their own: lazy tensors are computed and mapped ones are read, in the order of the file
// and by several threads. Names that share a tensor still share one. Tensors without data stay without.
StateDict realize(const StateDict& state, const RealizeOptions& options = {});

}  // namespace ballast
