// The layout of a GGUF 3 file, by the strict rules of ggml's own reader: tensors one after the other in the given
// order, each at a multiple of the alignment, zeros between and behind them.
//
// The file is byte for byte what gguf-py writes for the same metadata and tensors.
#pragma once

#include <memory>
#include <span>

#include <ballast/limits.hpp>
#include <ballast/state_dict.hpp>
#include <ballast/typed_metadata.hpp>

#include "formats/format.hpp"
#include "formats/gguf/reader.hpp"

namespace ballast::gguf {

// The alignment is what `fields` say. Tensors that `unknown` names are written with the types that they had. Throws
// Errc::unsupported, with a way out, for a tensor that GGUF cannot store, and Errc::limit for a header that no reader
// would accept. The file has no path yet; zeros lie between and behind its items.
SavePlan::File lay_out(std::span<const StateDict::Entry* const> entries, const TypedMetadata& fields,
                       const UnknownTypes& unknown = {}, const Limits& limits = {});

// Sets of files are cut as gguf-split cuts them.
std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions& options);

}  // namespace ballast::gguf
