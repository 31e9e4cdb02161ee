// Reads one source of any format into one checkpoint. Folders, indexes and shards are the business of open().
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

#include "checkpoint/recognize/detect.hpp"

namespace ballast {

// `depth` counts the archives and pickles around this source. An index.json is Errc::unsupported here.
Checkpoint read_source(const SourcePtr& source, const OpenOptions& options, std::uint64_t depth = 0);

// The same for a file whose format is known already; and for the whole set that such a file belongs to.
Checkpoint read_recognized(const Recognized& recognized, const OpenOptions& options, std::uint64_t depth = 0);
Checkpoint read_set(const Recognized& recognized, const OpenOptions& options);

// Replaces what safetensors keeps by agreement in its metadata by what it stands for.
Checkpoint unfold_agreements(Checkpoint checkpoint, const Limits& limits);

}  // namespace ballast
