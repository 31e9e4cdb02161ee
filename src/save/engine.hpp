// The streaming engine: carries out a plan, whatever the tensors in it are made of, in bounded memory.
//
// A plan may be carried out by a team: the members deal the jobs of each file among themselves, and write to the same
// temporary files. The first member makes these files, finishes them and gives them their names.
//
// It knows about storages only what they say about themselves. Every file is written under a temporary name; when all
// files are complete and the sources are still unchanged, the files get their names, in the order of the plan.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <ballast/save.hpp>

#include "io/sink.hpp"

namespace ballast {

using SinkFactory = std::function<std::unique_ptr<io::Sink>(const std::string& path)>;
// For members of a team other than the first: see io::join_file.
using JoinFactory = std::function<std::unique_ptr<io::Sink>(const std::string& path, const std::string& temporary)>;

SaveReport write_files(const SavePlan& plan, const SaveOptions& options, const SinkFactory& create,
                       const JoinFactory& join = {});

// The buffers of a save, one for each thread. A buffer holds the largest granule that the plan reads, if there are
// buffers of that size: then there may be fewer threads than the options allow.
struct Buffers {
  std::uint64_t bytes_each;
  unsigned threads;
};
Buffers buffers_of(const SavePlan& plan, const SaveOptions& options);

}  // namespace ballast
