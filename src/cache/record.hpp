// CacheRecord: all that a checkpoint is besides the bytes of its tensors, and what it was made of. A conversion cache
// is a safetensors file with this in its metadata.
//
// It is binary, because names and values of a pickle are bytes and its numbers any double, neither of which JSON can
// hold; and base64, because metadata is text.
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

// A tensor of the checkpoint, and where in the cache its bytes are.
struct RecordedTensor {
  enum class Place : std::uint8_t {
    nowhere,     // it has none
    own_name,    // under its own name
    other_name,  // under `stored_name`, because safetensors cannot have the name
    earlier,     // they are those of tensor number `same_as`, which comes before it
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
  std::int64_t modified_s = 0;  // what the time of the cache itself was set to
  Checkpoint checkpoint;        // without tensors
  std::vector<RecordedTensor> tensors;
  std::shared_ptr<const void> names;  // what the names of the tensors lie in
};

// Files, and notes about them, are kept by their places relative to `target`, which may be spelled otherwise next time.
std::string encode_cache_record(CacheRecord record, const std::string& target);

// Throws Errc::malformed for anything else than what encode_cache_record() gave.
CacheRecord decode_cache_record(std::string_view text, const std::string& target);

}  // namespace ballast
