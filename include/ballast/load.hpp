// load: a state dict from any checkpoint in one call, where it is wanted.
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
  std::vector<DeviceRule> map_location{};  // the first pattern that matches a name decides; `device` where none does
  LoadMode mode = LoadMode::mapped;        // of what goes to the cpu: views of the file, as open() gives them
  Safety safety = Safety::inert;
  std::string root{};            // a subtree ("state_dict"); its prefix is dropped
  bool allow_dangerous = false;  // go on with a checkpoint that names something dangerous
  unsigned threads = 0;          // 0 is one a core
  Limits limits{};
  Progress progress{};             // of what is read
  FilesPtr files = local_files();  // that the target is opened through
};

// A checkpoint that names something dangerous is Errc::unsafe.
StateDict load(const std::string& target, const LoadOptions& options = {});

struct RealizeOptions {
  unsigned threads = 0;
  Progress progress{};
};

// The same tensors in memory of their own: lazy ones computed, mapped ones read, in the order of the file and by
// several threads. Names of one tensor stay names of one tensor. Tensors without data stay without.
StateDict realize(const StateDict& state, const RealizeOptions& options = {});

}  // namespace ballast
