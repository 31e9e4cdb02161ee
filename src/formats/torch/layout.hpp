// The layout of a torch zip: byte for byte what torch.save of torch 2 writes for an OrderedDict of the same tensors.
//
//   NAME/data.pkl                the pickle
//   NAME/.format_version         "1": storages stand in the order of their numbers
//   NAME/.storage_alignment      "64"
//   NAME/byteorder               "little"
//   NAME/data/0, NAME/data/1 …   the storages
//   NAME/version                 "3\n"
//   NAME/.data/serialization_id  a fingerprint of the names and checksums of all members above
//
// All members are stored, not deflated, and begin at multiples of 64 bytes. Their checksums stand behind them and in
// the directory, so most bytes that are not data are known only when the data have been written.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/torch/records.hpp"

namespace ballast::torch {

// The folder inside the archive is named after the file. Items are storages, each named like the first tensor in it;
// some may be empty.
SavePlan::File lay_out(std::span<const Leaf> leaves, const std::string& path, std::vector<Note>& notes);

// Throws Errc::unsupported, with a way out, for a tensor that torch cannot store. Tensors that share bytes go into one
// file.
std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions& options);

}  // namespace ballast::torch
