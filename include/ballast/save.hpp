// save: any list of tensors to a file, streamed in bounded memory, in parallel, whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>

namespace ballast {

struct SaveOptions {
  std::uint64_t max_shard_bytes = 0;  // tensor bytes in a shard; 0 is one file
  bool overwrite = false;
  bool durable = true;                                   // fsync before and after the rename
  unsigned threads = 0;                                  // 0 is one a core
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  // for all buffers together
  Limits limits{};
  Progress progress{};
};

// What a save will do, as a value: made and checked before anything is written.
struct SavePlan {
  struct Item {
    std::string name;
    Tensor tensor;
    std::uint64_t offset;  // in the file
  };
  struct File {
    std::string path;
    std::vector<std::byte> head;  // the bytes before the first item
    std::vector<Item> items;      // in ascending order of offset, disjoint
    std::uint64_t size_bytes = 0;
  };
  std::vector<File> files;  // written in this order: an index comes last
  std::uint64_t data_bytes = 0;
  std::uint64_t memory_bytes = 0;  // the most that the buffers will take

  std::uint64_t total_bytes() const noexcept;
};

struct SaveReport {
  std::vector<CheckpointFile> files;
  std::uint64_t data_bytes = 0;
  double seconds = 0;
};

// The format follows from the ending of `path` (".safetensors"); a folder gets "model.safetensors" in it.
SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});
SaveReport execute(const SavePlan& plan, const SaveOptions& options = {});
SaveReport save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

// One tensor as a NumPy file.
void save_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options = {});

}  // namespace ballast
