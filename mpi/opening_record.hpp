// OpeningRecord: what opening a target asked of its files, and what these answered. It is made on one rank and sent to
// the others, which then open the same target without asking the file system again.
//
// Several threads may add to a record at once, and several may read one to which nobody adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::mpi {

// Bytes of a file by their offsets: disjoint, and none touches the next.
class KnownBytes {
 public:
  void add(std::uint64_t offset, std::span<const std::byte> bytes);
  bool read(std::uint64_t offset, std::span<std::byte> out) const;  // false if not all of the range is known

  const std::map<std::uint64_t, std::vector<std::byte>>& parts() const noexcept { return parts_; }

 private:
  static void extend(std::vector<std::byte>& part, std::uint64_t at, std::span<const std::byte> bytes);

  std::map<std::uint64_t, std::vector<std::byte>> parts_;
};

struct FileRecord {
  // Either the file could not be opened, and this is the packed failure, or the rest is what its source says of itself.
  std::vector<std::byte> failure;
  std::string name, identity;
  std::optional<std::string> location;  // the file that its first byte lies in
  std::uint64_t size_bytes = 0, bytes_per_round_trip = 0;
  KnownBytes bytes;
};

class OpeningRecord {
 public:
  enum class Question : std::uint8_t { exists, prefers_whole, leaves_its_folder };

  OpeningRecord() = default;
  explicit OpeningRecord(std::span<const std::byte> packed);
  std::vector<std::byte> packed() const;

  // From now on, nothing is added.
  void close();
  // Gives the memory of the bytes back: what is read from now on is data, which every reader reads for itself.
  void forget_bytes();

  void add_file(const std::string& name, FileRecord file);
  void add_bytes(const std::string& name, std::uint64_t offset, std::span<const std::byte> bytes);
  void add_answer(Question question, const std::string& name, bool answer);
  void add_list(const std::string& name, const std::optional<std::vector<std::string>>& names);
  void add_notes(const std::string& name, const std::vector<std::string>& notes);

  const FileRecord* file(const std::string& name) const;
  std::optional<bool> answer(Question question, const std::string& name) const;
  const std::optional<std::vector<std::string>>* list(const std::string& name) const;
  const std::vector<std::string>* notes(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  bool is_closed_ = false;
  std::map<std::string, FileRecord> files_;
  std::map<std::pair<Question, std::string>, bool> answers_;
  std::map<std::string, std::optional<std::vector<std::string>>> lists_;
  std::map<std::string, std::vector<std::string>> notes_;
};

}  // namespace ballast::mpi
