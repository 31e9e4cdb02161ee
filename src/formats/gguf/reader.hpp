// Reads a GGUF file: the header and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/source.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast::gguf {

// How the numbers inside of quantized blocks lie in a big-endian file. Two programs write such files and disagree, and
// nothing in the file tells which one wrote it: gguf_convert_endian swaps these numbers, GGUFWriter leaves them as they
// are.
enum class BlockOrder : std::uint8_t { swapped, as_is };

struct ReadOptions {
  Limits limits{};
  BlockOrder block_order = BlockOrder::swapped;
  bool lenient = false;  // tensors that share bytes become a note
};

// A part of a set of files that belong together.
struct Split {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 0;
  std::optional<std::uint64_t> tensors;  // in all parts together
};

// Tensors whose types are newer than our table, by name. Their U8 bytes reach to the next tensor or to the end.
using UnknownTypes = std::map<std::string, UnknownGgml, std::less<>>;

struct GgufFile {
  Checkpoint checkpoint;
  TypedMetadata fields;
  UnknownTypes unknown_types;  // by tensor
  std::uint32_t version = 3;
  bool is_big_endian = false;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;
  std::optional<Split> split;
};

// Reads strictly what readers could disagree about (overlaps, duplicates, counts). What ggml refuses although it is
// clear is read with a note: long names, holes between tensors, tensors in another order than their data.
GgufFile read(const SourcePtr& source, const ReadOptions& options = {});

}  // namespace ballast::gguf
