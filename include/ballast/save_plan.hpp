// SavePlan: what a save will do; SaveOptions: how it does it. Both are plain values: several threads may read one while
// nobody changes it. A plan shares the storages of its tensors and keeps them alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/team.hpp>

namespace ballast {

struct SaveOptions {
  std::uint64_t max_shard_bytes = 0;  // tensor bytes in a shard; 0 is one file
  bool overwrite = false;
  bool allow_dangerous = false;  // go on with a checkpoint that names something dangerous
  bool allow_empty = false;      // write a file without a tensor, which is Errc::not_found otherwise
  bool dedupe = false;           // safetensors: writes bytes with several names once; metadata list the other names
  bool keep_values = false;      // keep the values beside the tensors of a pickle, as JSON in the metadata
  bool name_framework = true;    // safetensors from another format: "format" is "pt", as transformers wants it
  bool raw_blocks = false;       // safetensors: ggml's blocks as bytes, from which the same GGUF can be made again
  bool compress = false;         // safetensors: tensors that shrink become zstd frames, which open() reads as usual
  bool strict = false;           // refuse, with Errc::mismatch, what would be a note: overflows, a wrong checksum
  bool durable = true;           // fsync before and after the rename
  bool digests = false;          // compute the digest of every tensor while it is written: SaveReport::digests
  bool verify = false;           // before the file gets its name, read all of it back and compare; implies digests
  unsigned threads = 0;          // 0 is one a core
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  // for all buffers together
  Limits limits{};
  Progress progress{};
  Team* team = nullptr;  // the processes that write the files together: see team.hpp
};

// What a save will do: made and checked before anything is written.
struct SavePlan {
  struct Item {
    std::string name;
    Tensor tensor;
    std::uint64_t offset;          // in the file
    bool is_tensor = false;        // whether this is all of the tensor of that name, and nothing else
    std::optional<DType> dtype{};  // of that tensor, if it is written as another dtype: blocks, compressed tensors
  };
  struct Piece {
    std::uint64_t offset;  // in the file
    std::vector<std::byte> bytes;
  };
  struct File {
    std::string path;
    std::vector<std::byte> head;  // the bytes before the first item
    std::vector<Item> items;      // in ascending order of offset, disjoint
    std::uint64_t size_bytes = 0;
    std::uint64_t tensors = 0;  // names in the file; several can share an item
    // Makes the bytes between and behind the items, if they depend on the data. Called once, when all items are
    // written, with the CRC-32 of each. Empty if the format has no such bytes.
    std::function<std::vector<Piece>(std::span<const std::uint32_t> crc32s)> finish{};
  };
  std::vector<File> files;  // written in this order: an index comes last
  // The index beside a single file, or the single file beside an index: whoever opens the folder would use this older
  // file. If it exists, the save is refused, or, if files are overwritten, it is removed after the last file is
  // written.
  std::string rival{};
  // A digest of what the plan will make of which bytes of which files: equal plans have equal keys. By this key, a job
  // that was killed is continued, file by file. Empty for a single file, unless the sources are far away, and if
  // nothing tells the bytes of a source from others.
  std::string key{};
  // The sources are far away, so that reading them twice is to be avoided: what is written of a file is kept, too, and
  // the next run begins with it.
  bool is_far = false;
  // What the checkpoint has and the files will not have; and what would be removed of a larger set that they replace.
  std::vector<Note> notes;
  std::uint64_t data_bytes = 0;
  std::uint64_t memory_bytes = 0;  // the most that the buffers will take, and that tensors keep while they are read

  std::uint64_t total_bytes() const noexcept;
};

}  // namespace ballast
