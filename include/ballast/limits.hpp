// Limits: every cap on hostile or absurd input, in one place. Raise a field to open a huge file whose origin you trust.
//
// Limits are plain values: every call uses the ones that it is given, and none are global. Any thread may have its own.
#pragma once

#include <cstdint>

namespace ballast {

struct Limits {
  std::uint64_t max_header_bytes = 100'000'000;   // a safetensors header; the reference library's cap
  std::uint64_t max_index_bytes = 1'000'000'000;  // an index.json
  std::uint64_t max_tensors = 16'000'000;
  std::uint64_t max_metadata_keys = 1'000'000;  // each takes a hundred bytes, however short it is in the file
  std::uint64_t max_rank = 64;                  // dimensions of one tensor
  std::uint64_t max_json_depth = 8;             // safetensors itself needs 3
  std::uint64_t max_shards = 100'000;

  std::uint64_t max_archive_members = 4'000'000;              // in a zip or a tar
  std::uint64_t max_archive_depth = 4;                        // archives and checkpoints inside each other
  std::uint64_t max_inflated_bytes = std::uint64_t{1} << 30;  // a compressed member that must be held whole in memory
  std::uint64_t max_pickle_bytes = std::uint64_t{4} << 30;    // a pickle, without the large strings in it
  std::uint64_t max_pickle_nodes = 64'000'000;                // objects in one pickle; each takes 8 bytes or more
  std::uint64_t max_values = 100'000;                         // plain values that are kept to be shown

  // Materialising views (a stride of 0 repeats bytes) may add this many bytes to the bytes of the input, or this many
  // times the bytes of the input, whichever is more.
  std::uint64_t max_expansion_bytes = std::uint64_t{1} << 30;
  std::uint64_t max_expansion_ratio = 16;

  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace ballast
