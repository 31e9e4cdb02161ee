// CacheRecord: all of a checkpoint except the bytes of its tensors, and what it was made of. A conversion cache is a
// safetensors file with this record in its metadata.
//
// The record is binary, because JSON cannot hold all names, values and numbers of a pickle: names and values are bytes,
// and numbers any double. It is in base64, because metadata is text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "cache/identity.hpp"

namespace ballast {

inline constexpr std::string_view kCacheMetadataKey = "ballast.cache";

// A tensor of the checkpoint, and where its bytes are in the cache.
struct RecordedTensor {
  enum class Place : std::uint8_t {
    nowhere,     // the tensor has no bytes
    own_name,    // under its own name
    other_name,  // under `stored_name`, because safetensors cannot have the name
    earlier,     // they are the bytes of tensor number `same_as`, which comes before this one
  };
  std::string_view name;
  DType dtype = DType::u8;
  Shape shape{};
  Place place = Place::own_name;
  std::string_view stored_name{};
  std::uint64_t same_as = 0;
};

struct CacheRecord {
  CacheKey key;
  std::int64_t modified_s = 0;  // the time that the cache file itself was set to
  Checkpoint checkpoint;        // without tensors
  std::vector<RecordedTensor> tensors;
  std::shared_ptr<const void> names;  // the memory of the tensors' names
};

// Files, and notes about them, are stored relative to `target`, which may be spelled otherwise next time.
std::string encode_cache_record(CacheRecord record, const std::string& target);

// Throws Errc::malformed for anything but a text that encode_cache_record() made.
CacheRecord decode_cache_record(std::string_view text, const std::string& target);

}  // namespace ballast
