// The layout of a torch zip: byte for byte what torch.save of torch 2 writes for an OrderedDict of the same tensors.
//
//   NAME/data.pkl                the pickle
//   NAME/.format_version         "1": storages stand in the order of their numbers
//   NAME/.storage_alignment      "64"
//   NAME/byteorder               "little"
//   NAME/data/0, NAME/data/1 …   the storages
//   NAME/version                 "3\n"
//   NAME/.data/serialization_id  a fingerprint of the names and checksums of all the above
//
// All are stored, not deflated, and begin at multiples of 64 bytes. Their checksums stand behind them and in the
// directory, so most of what is no data can only be told when the data are written.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch/records.hpp"

namespace ballast::torch {

struct Piece {
  std::uint64_t offset;
  std::vector<std::byte> bytes;
};

struct Layout {
  struct Item {
    std::string_view name;  // of the first tensor in the storage
    Tensor tensor;
    std::uint64_t offset;  // in the file
  };
  std::vector<std::byte> head;  // what comes before the first item
  std::vector<Item> items;      // the storages, in the order of the file; some may be empty
  std::uint64_t size_bytes = 0;
  // What stands between and behind the items, from the CRC-32 of each. May be called when the layout is gone.
  std::function<std::vector<Piece>(std::span<const std::uint32_t>)> finish;
  std::vector<Note> notes;
};

// `path` is that of the file: the folder inside the archive is called after it. The leaves must outlive the layout.
Layout lay_out(std::span<const Leaf> leaves, std::string_view path);

}  // namespace ballast::torch
