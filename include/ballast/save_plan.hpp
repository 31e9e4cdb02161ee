// SavePlan: what a save will do, as a value; SaveOptions: how it is to do it. Plain values without threads of their
// own.
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

namespace ballast {

struct SaveOptions {
  std::uint64_t max_shard_bytes = 0;  // tensor bytes in a shard; 0 is one file
  bool overwrite = false;
  bool allow_dangerous = false;  // go on with a checkpoint that names something dangerous
  bool allow_empty = false;      // write a file without a tensor, which is Errc::not_found otherwise
  bool dedupe = false;           // safetensors: names of the same bytes once, the others agreed in the metadata
  bool keep_values = false;      // what stands beside the tensors of a pickle, as JSON in the metadata
  bool name_framework = true;    // safetensors of another format: "format" is "pt", as transformers wants it
  bool raw_blocks = false;       // ggml's blocks into safetensors as bytes, from which the same GGUF can be made again
  bool compress = false;         // safetensors: what shrinks goes in as zstd frames, which open() reads like any other
  bool strict = false;           // refuse, with Errc::mismatch, what would be a note: overflows, a wrong checksum
  bool durable = true;           // fsync before and after the rename
  bool digests = false;          // take the digest of every tensor on its way: SaveReport::digests
  bool verify = false;           // read everything back before it gets its name, and compare; implies digests
  unsigned threads = 0;          // 0 is one a core
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  // for all buffers together
  Limits limits{};
  Progress progress{};
};

// What a save will do, as a value: made and checked before anything is written.
struct SavePlan {
  struct Item {
    std::string name;
    Tensor tensor;
    std::uint64_t offset;          // in the file
    bool is_tensor = false;        // all of the tensor that is called so, and nothing else
    std::optional<DType> dtype{};  // of that tensor, where its bytes are written as another: blocks, compressed ones
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
    std::uint64_t tensors = 0;  // names in it; several can share an item
    // The bytes between and behind the items, where they can only be told from the data: called once, when all items
    // are written, with the CRC-32 of each. Nothing where a format has no such bytes.
    std::function<std::vector<Piece>(std::span<const std::uint32_t> crc32s)> finish{};
  };
  std::vector<File> files;  // written in this order: an index comes last
  // The index beside a single file, or the single file beside an index: whoever opens the folder would take the old
  // one. Where it is there it is refused, or, when files are overwritten, removed after the last of them.
  std::string rival{};
  // What the plan will make of which bytes of which files, as a digest: equal plans have equal ones. A job that was
  // killed is taken up again by it, file by file. Empty for a single file, and where a source is not a file.
  std::string key{};
  std::vector<Note> notes;  // what the checkpoint has and the files will not have
  std::uint64_t data_bytes = 0;
  std::uint64_t memory_bytes = 0;  // the most that the buffers will take, and what tensors keep while they are read

  std::uint64_t total_bytes() const noexcept;
};

}  // namespace ballast
