// CacheTest: gives a test its own folders for files, for caches and for a key, and a checkpoint that is worth caching.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include <ballast/cache.hpp>
#include <ballast/open.hpp>

#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"

namespace ballast::test {

inline const OpenOptions kIgnore{.cache = Cache::ignore}, kAutomatic{.cache = Cache::automatic},
    kAlways{.cache = Cache::always};

// A matrix that is stored transposed, and a vector that is not.
inline std::string strided_file(float first = 1) {
  return TorchZip()
      .object(py::dict({{"w", py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {1, 2})},
                        {"b", py::tensor(py::storage("Float", "1", 2), 0, {2}, {1})}}))
      .record("0", raw<float>({first, 2, 3, 4}))
      .record("1", raw<float>({5, 6}))
      .text();
}

inline std::string file_of(const Tensor& tensor) {
  const auto location = tensor.storage()->location();
  return location ? location->file : "";
}

inline bool is_from_cache(const Checkpoint& checkpoint) {
  return file_of(checkpoint.tensors[0].tensor).ends_with(".safetensors");
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    setenv("XDG_CACHE_HOME", (home / "cache").c_str(), 1);
    setenv("XDG_STATE_HOME", (home / "state").c_str(), 1);
  }
  ~CacheTest() override {
    unsetenv("XDG_CACHE_HOME");
    unsetenv("XDG_STATE_HOME");
  }

  std::string beside(const std::string& name = "model.pt") const { return dir / ("." + name + kEnding); }

  static constexpr const char* kEnding = ".ballast-cache.safetensors";
  TempDir dir, home;
};

}  // namespace ballast::test
