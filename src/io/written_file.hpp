// WrittenFile: what every sink that is a file does alike: it is written at offsets, read back, and synced.
#pragma once

#include <string>
#include <utility>

#include <ballast/error.hpp>

#include "io/sink.hpp"

namespace ballast::io {

class WrittenFile : public Sink {
 public:
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void read_back(std::uint64_t offset, std::span<std::byte> out) const override;
  void sync() override;
  void settle() override;
  std::uint64_t free_bytes() const override;

 protected:
  WrittenFile(std::string path, bool durable) : path_(std::move(path)), durable_(durable) {}

  virtual int fd() const noexcept = 0;
  Error failure_to_write(int error) const;
  // Network file systems report some failures only at close().
  void ask_for_late_failures() const;

  const std::string path_;  // for messages: the name that the file will have
  const bool durable_;
  std::uint64_t size_ = 0;
};

}  // namespace ballast::io
