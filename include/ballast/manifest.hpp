// Manifest: names, dtypes, shapes and digests of tensors, written when the tensors are made, to be checked later.
//
// The digest is XXH3 (64 bits) of a tensor's contiguous little-endian bytes, whatever the format that holds them. It is
// computed in parallel: if a tensor has more than 64 KiB, each 64 KiB has a digest, and the tensor's digest is that of
// these digests, as 8 bytes each, least significant first.
//
// A manifest owns everything in it. The functions may be called from several threads at once.
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
#include <ballast/team.hpp>

namespace ballast {

struct Manifest {
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    std::optional<std::uint64_t> digest;  // empty if there is no data
  };
  std::vector<Entry> tensors;
};

struct ManifestOptions {
  unsigned threads = 0;
  Progress progress{};
  Limits limits{};       // for views that repeat bytes
  Team* team = nullptr;  // the processes that read the tensors together: see team.hpp
};

// Reads every byte of the checkpoint in chunks of about 1 MiB, except tensors whose digest is `known`, for example from
// a SaveReport.
Manifest make_manifest(const Checkpoint& checkpoint, std::span<const TensorDigest> known = {},
                       const ManifestOptions& options = {});

void save_manifest(const Manifest& manifest, const std::string& path, const SaveOptions& options = {});
Manifest load_manifest(const std::string& path, const Limits& limits = {});

}  // namespace ballast
