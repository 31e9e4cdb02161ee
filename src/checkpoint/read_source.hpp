// One source to one checkpoint, whatever it is. Folders, indexes and shards are the business of open().
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

#include "checkpoint/recognize/detect.hpp"

namespace ballast {

// `depth` counts the archives and pickles around this source. An index.json is Errc::unsupported here.
Checkpoint read_source(const SourcePtr& source, const OpenOptions& options, std::uint64_t depth = 0);

// The same with a file of which it is known what it is; and all of the set that such a file is a part of.
Checkpoint read_recognized(const Recognized& recognized, const OpenOptions& options, std::uint64_t depth = 0);
Checkpoint read_set(const Recognized& recognized, const OpenOptions& options);

// What safetensors keeps by agreement in its metadata, as what it stands for.
Checkpoint unfold_agreements(Checkpoint checkpoint, const Limits& limits);

}  // namespace ballast
