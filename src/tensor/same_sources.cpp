#include "tensor/same_sources.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include "core/host_name.hpp"
#include "core/message.hpp"
#include "io/identity.hpp"
#include "io/open_file.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

std::optional<io::FileIdentity> identity_of(const FileLocation& location) {
  struct stat found = {};
  if (descriptor_of(location) < 0 || fstat(descriptor_of(location), &found) != 0) return std::nullopt;
  return io::identify(found);
}

// What a member has in the place of a file of the first one.
struct Difference {
  std::string path, what;
};

Error different_files(const Difference& found, std::size_t rank, std::size_t members, std::string_view host) {
  return Error(Errc::mismatch,
               fmt::format("the processes of this job read different files: {} (rank {} of {}, host {})", found.what,
                           rank, members, host))
      .in(found.path)
      .hint("let all of them read the same file system; or give them copies that keep the times, as rsync -a makes");
}

class ReadFiles {
 public:
  explicit ReadFiles(std::span<const std::byte> message)
      : in_(message), host_(read_text(in_)), left_(in_.u64("count")) {}

  struct File {
    std::string_view path;
    std::uint64_t size_bytes;
    std::string_view version;
  };
  std::string_view host() const noexcept { return host_; }
  std::optional<File> next() {
    if (left_ == 0) return std::nullopt;
    --left_;
    const std::string_view path = read_text(in_);
    const std::uint64_t size = in_.u64("size");
    return File{path, size, read_text(in_)};
  }

 private:
  Cursor in_;
  std::string_view host_;
  std::uint64_t left_;
};

std::optional<Difference> first_difference(ReadFiles first, ReadFiles other) {
  for (;;) {
    const auto wanted = first.next(), found = other.next();
    if (!wanted && !found) return std::nullopt;
    if (!found) return Difference{std::string(wanted->path), "this one is missing"};
    if (!wanted) return Difference{std::string(found->path), "rank 0 does not read this one"};
    if (found->size_bytes != wanted->size_bytes) {
      return Difference{std::string(found->path),
                        fmt::format("this one has {} bytes, and {} on rank 0", found->size_bytes, wanted->size_bytes)};
    }
    if (found->version != wanted->version)
      return Difference{std::string(found->path), "this one was changed at another time than that of rank 0"};
  }
}

}  // namespace

void SourceList::add(const CheckpointFile& file) {
  if (!file.source) return;
  const auto location = file.source->location(0);
  if (location && location->open_file != nullptr) return add_location(*location);
  files_.push_back({file.path, file.source->size_bytes(), file.source->identity()});
}

void SourceList::add_location(const FileLocation& location) {
  if (location.open_file == nullptr || !seen_.insert(location.open_file).second) return;
  const auto identity = identity_of(location);
  if (identity) files_.push_back({location.file, identity->size_bytes, std::to_string(identity->modified_ns)});
}

void SourceList::add(std::string_view name, const Tensor& tensor) {
  tensors_.add(name);
  for_each_ancestor(tensor, [this](const Tensor& ancestor, const Storage::Derivation& derivation) {
    add_facts(tensors_, ancestor, derivation);
    const auto place = derivation.packed || !ancestor.storage() ? derivation.packed : ancestor.storage()->location();
    if (!place) return;
    tensors_.add(place->offset);
    add_location(*place);
  });
}

void SourceList::describe(Message& message) const {
  message.text(host_name()).number(files_.size());
  for (const File& file : files_) message.text(file.path).number(file.size_bytes).text(file.version);
}

// Digests first: in almost all cases they are equal, and nothing else need be sent.
void SourceList::check_files(Team& team) const {
  if (team.size() == 1) return;
  kernels::FactHash hash;
  for (const File& file : files_) {
    hash.add(file.size_bytes);
    hash.add(file.version);
  }
  const std::uint64_t own = hash.digest();
  const auto digests = team.exchange(Message().number(own));
  const auto is_own = [own](const auto& message) { return Cursor(message).u64("digest") == own; };
  if (std::ranges::all_of(digests, is_own)) return;

  Message message;
  describe(message);
  const auto messages = team.exchange(message);
  for (std::size_t rank = 1; rank < messages.size(); ++rank) {
    const ReadFiles other(messages[rank]);
    if (const auto found = first_difference(ReadFiles(messages[0]), other))
      throw different_files(*found, rank, messages.size(), other.host());
  }
}

void SourceList::check(Team& team) const {
  check_files(team);
  const std::uint64_t own = tensors_digest();
  for (const auto& message : team.exchange(Message().number(own))) {
    if (Cursor(message).u64("digest") == own) continue;
    throw Error(Errc::mismatch,
                "the processes of this job would not read the same tensors: what they were told differs")
        .hint("give all of them the same arguments, and the same version of this program");
  }
}

void check_same_files(Team& team, const Checkpoint& checkpoint) {
  if (team.size() == 1) return;
  SourceList sources;
  for (const CheckpointFile& file : checkpoint.files) sources.add(file);
  together(team, [&] { sources.check_files(team); });
}

void check_same_sources(Team& team, const Checkpoint& checkpoint) {
  if (team.size() == 1) return;
  SourceList sources;
  for (const CheckpointFile& file : checkpoint.files) sources.add(file);
  for (const auto& [name, tensor] : checkpoint) sources.add(name, tensor);
  sources.check(team);
}

void check_same_sources(Team& team, const Tensor& tensor) {
  if (team.size() == 1) return;
  SourceList sources;
  sources.add("", tensor);
  sources.check(team);
}

}  // namespace ballast
