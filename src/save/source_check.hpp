// SourceCheck: the checksums that storages declare, compared with those that their bytes really have.
//
// Most come for free: an item that is the whole of a storage has its checksum taken while it is written. Storages that
// are written in parts, or strided, or cast on the way, are read once more. Nothing is read for storages that declare
// none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ballast/save.hpp>

#include "core/thread_pool.hpp"

namespace ballast {

class SourceCheck {
 public:
  explicit SourceCheck(const SavePlan& plan);  // which must outlive it

  // Whether the item's checksum is that of a storage that declares one.
  bool wants(const SavePlan::Item& item) const;
  void found(const SavePlan::Item& item, std::uint32_t crc32);  // of one that it wants

  // Reads the storages that no item was the whole of.
  void read_the_rest(ThreadPool& pool, std::uint64_t buffer_bytes, const Progress& progress);

  // A note for each file that has wrong checksums. Where `strict`, throws Errc::mismatch instead.
  std::vector<Note> conclude(bool strict) const;

 private:
  void add(const SavePlan::Item& item, const Tensor& tensor);

  struct Source {
    std::uint32_t declared;
    std::string tensor;  // the first that lies in it
    std::optional<std::uint32_t> found{};
  };
  std::map<const Storage*, Source> sources_;
  std::vector<const Storage*> order_;  // in which the plan comes to them
};

}  // namespace ballast
