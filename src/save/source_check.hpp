// SourceCheck: compares the checksums that storages declare with those of their bytes.
//
// Most checksums cost no extra read: if an item is the whole of a storage, its checksum is computed while it is
// written. Storages that are written in parts, or strided, or cast on the way, are read once more. Storages that
// declare no checksum are not read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ballast/save.hpp>
#include <ballast/team.hpp>

#include "core/thread_pool.hpp"

namespace ballast {

class SourceCheck {
 public:
  explicit SourceCheck(const SavePlan& plan);  // the plan must outlive this object

  // Whether the item is the whole of a storage that declares a checksum.
  bool wants(const SavePlan::Item& item) const;
  void found(const SavePlan::Item& item, std::uint32_t crc32);  // for an item that it wants

  // Reads the storages for which no item was the whole, each member of the team its share.
  void read_the_rest(Team& team, ThreadPool& pool, std::uint64_t buffer_bytes, const Progress& progress);

  // A note for each file that has wrong checksums. If `strict`, throws Errc::mismatch instead.
  std::vector<Note> conclude(bool strict) const;

 private:
  void add(const SavePlan::Item& item, const Tensor& tensor, bool is_one_of_several);

  struct Source {
    std::uint32_t declared;
    std::string tensor;      // the first tensor that lies in it, or is made from it
    bool is_one_of_several;  // that the tensor is made from, so that the file may not know its name
    std::optional<std::uint32_t> found{};
  };
  std::map<const Storage*, Source> sources_;
  std::vector<const Storage*> order_;  // the order in which the plan comes to them
};

}  // namespace ballast
