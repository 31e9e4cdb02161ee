// RawFile: bytes to a new file that appears under its name when it is complete, or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ballast::cli {

struct RawFileOptions {
  bool overwrite = false;
  bool sync = true;
};

class RawFile {
 public:
  // Throws Errc::invalid_argument where there is such a file and it may not be overwritten.
  RawFile(std::string path, RawFileOptions options);
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void publish();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_, temporary_;
  RawFileOptions options_;
  int descriptor_ = -1;
};

}  // namespace ballast::cli
