#include "formats/torch/scan.hpp"

#include <unordered_set>

#include "core/name_hash.hpp"
#include "formats/archive/tar.hpp"
#include "formats/torch/read.hpp"

namespace ballast::torch {

// In a whole legacy stream the storages are known, and nothing in them is a pickle.
void scan_stream(const ScannedPart& file, Scanner& scanner) {
  const std::uint64_t size = file.source->size_bytes();
  const auto stream = stream_extent(file.source, scanner.limits());
  if (!stream) return scanner.scan_pickles(file, 0, size);
  scanner.scan_pickles(file, 0, stream->pickles_end);
  if (stream->end == size) return;
  scanner.find(file.source->name(), stream->end, "bytes follow the checkpoint");
  scanner.scan_pickles(file, stream->end, size);
}

void scan_tar(const ScannedPart& file, Scanner& scanner) {
  scanner.scan_as_pickle_too(file);
  const archive::Tar tar = archive::read_tar(file.source, scanner.limits());
  const auto inside = [&](const archive::TarMember& member) {
    return ScannedPart{archive::member_source(tar, member),
                       file.member.empty() ? member.name : file.member + "/" + member.name, file.depth + 1};
  };
  NameViewMap<const archive::TarMember*> members;
  for (const archive::TarMember& member : tar.members) members.try_emplace(member.name, &member);
  // In the members of a checkpoint, pickles and numbers take turns.
  std::unordered_set<const archive::TarMember*> done;
  for (const TarPickle& pickle : find_tar_pickles(tar, scanner.limits())) {
    const archive::TarMember& member = *members.at(pickle.member);
    done.insert(&member);
    scanner.scan_pickles(inside(member), pickle.first, pickle.last);
  }
  for (const archive::TarMember& member : tar.members) {
    if (!done.contains(&member)) scanner.scan_file(inside(member));
  }
}

}  // namespace ballast::torch
