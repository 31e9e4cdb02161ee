// Manifest: names, dtypes, shapes and digests of tensors, written when they are made and checked ever after.
//
// The digest is XXH3 (64 bits) of a tensor's contiguous little-endian bytes, whatever the format that holds them. It is
// taken in parallel: of more than 64 KiB, each 64 KiB has its own, and the digest is that of those, as 8 bytes each,
// least significant first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/save.hpp>

namespace ballast {

struct Manifest {
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    std::optional<std::uint64_t> digest;  // nothing where there is no data
  };
  std::vector<Entry> tensors;
};

struct ManifestOptions {
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};  // on views that repeat bytes
};

// Of a checkpoint. Digests that are known, such as those of a SaveReport, are not taken again.
Manifest make_manifest(const Checkpoint& checkpoint, std::span<const TensorDigest> known = {},
                       const ManifestOptions& options = {});

void save_manifest(const Manifest& manifest, const std::string& path, const SaveOptions& options = {});
Manifest load_manifest(const std::string& path, const Limits& limits = {});

}  // namespace ballast
