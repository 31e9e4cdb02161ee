// Reads PyTorch's files: the zip of today, the stream of the years before 1.6, the tar of 2016, bare pickles.
//
// Opening reads the directory, the pickles and the sizes of nested tensors, and nothing else. Stored tensors are views
// of the file.
#pragma once

#include <string>
#include <unordered_set>

#include <ballast/checkpoint.hpp>
#include <ballast/global.hpp>
#include <ballast/limits.hpp>

#include "formats/archive/tar.hpp"
#include "formats/archive/zip.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/torch/objects.hpp"
#include "formats/torch/rebuild.hpp"

namespace ballast::torch {

struct ReadOptions {
  Limits limits{};
  Safety safety = Safety::inert;
  NestedReader nested;         // for files inside the bytes of a pickle
  Objects* objects = nullptr;  // where the whole object is kept, for those who want it
};

// Whether PyTorch wrote a zip: it has a data.pkl.
bool is_torch_zip(const archive::Zip& zip);

// The members that the pickles of a zip name as storages: they are numbers, whatever they look like. The zip may have
// been read leniently.
std::unordered_set<const archive::ZipMember*> storage_members(const archive::Zip& zip, const Limits& limits);

Checkpoint read_zip(const archive::Zip& zip, const ReadOptions& options);
Checkpoint read_tar(const SourcePtr& source, const ReadOptions& options);

// The pickles between the numbers in a tar's "storages" and "tensors", as far as they can be told apart.
struct TarPickle {
  std::string member;
  std::uint64_t first = 0, last = 0;
};
std::vector<TarPickle> find_tar_pickles(const archive::Tar& tar, const Limits& limits);

// The first pickle of a file, run to its end.
struct FirstPickle {
  pickle::Graph graph;
  pickle::Pickle pickle;
};
FirstPickle run_first_pickle(const SourcePtr& source, const Limits& limits);

// Reads a legacy stream or a bare pickle: the value of the first pickle tells them apart.
Checkpoint read_stream(FirstPickle first, const ReadOptions& options);
Checkpoint read_stream(const SourcePtr& source, const ReadOptions& options);

// Where the pickles of a legacy stream end, and where its storages end; nothing if the file is not such a stream, or is
// broken. Numbers lie between the two.
struct StreamExtent {
  std::uint64_t pickles_end = 0, end = 0;
};
std::optional<StreamExtent> stream_extent(const SourcePtr& source, const Limits& limits);

// Reads the pickle at `first`, in a file of another kind (an npy of objects).
Checkpoint read_pickle(const SourcePtr& source, std::uint64_t first, const ReadOptions& options);

}  // namespace ballast::torch
