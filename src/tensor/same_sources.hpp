// SourceList: what a member of a team is going to read, so that all members can find out that they read the same. Two
// machines may see other bytes under one name: a copy that is out of date, a folder that each of them has for itself.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/team.hpp>

#include "core/message.hpp"
#include "kernels/fact_hash.hpp"

namespace ballast {

class SourceList {
 public:
  // A file, and which bytes it has: its size and the time of its last change, or what a server says of it. Nothing that
  // differs between copies that keep their times, such as the inode; nor the name.
  void add(const CheckpointFile& file);

  // What is called `name`, how it is made, and from which bytes of which files.
  void add(std::string_view name, const Tensor& tensor);

  // A digest of everything but the files.
  std::uint64_t tensors_digest() const noexcept { return tensors_.digest(); }

  // Throw Errc::mismatch in every member if the files of one differ from those of the first, or anything.
  void check_files(Team& team) const;
  void check(Team& team) const;

 private:
  struct File {
    std::string path;
    std::uint64_t size_bytes = 0;
    std::string version;
  };
  void add_location(const FileLocation& location);
  void describe(Message& message) const;

  std::vector<File> files_;
  std::set<const OpenFile*> seen_;
  kernels::FactHash tensors_;
};

// Throws Errc::mismatch in every member of the team unless all of them opened the same files, or read the same tensors
// of the same files. Each digest that is compared costs an exchange of 8 bytes.
void check_same_files(Team& team, const Checkpoint& checkpoint);
void check_same_sources(Team& team, const Checkpoint& checkpoint);
void check_same_sources(Team& team, const Tensor& tensor);

}  // namespace ballast
