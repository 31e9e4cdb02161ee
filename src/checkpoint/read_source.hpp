// One source to one checkpoint, whatever it is. Folders, indexes and shards are the business of open().
#pragma once

#include <ballast/open.hpp>

#include "formats/gguf/reader.hpp"
#include "io/byte_source.hpp"

namespace ballast {

// `depth` counts the archives and pickles around this source. An index.json is Errc::unsupported here.
Checkpoint read_source(const io::ByteSourcePtr& source, const OpenOptions& options, std::uint64_t depth = 0);

// What safetensors keeps by agreement in its metadata, as what it stands for.
Checkpoint unfold_agreements(Checkpoint checkpoint, const Limits& limits);

gguf::ReadOptions gguf_options(const OpenOptions& options);

// What a GGUF file, or a whole set of them, is as a checkpoint.
Checkpoint from_gguf(gguf::GgufFile file);

}  // namespace ballast
