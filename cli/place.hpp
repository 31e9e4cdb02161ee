// Where a tensor's bytes lie, as a reader of our output needs it: a file named relative to the target, and a byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast::cli {

struct Place {
  std::string_view file;                // as long as the Places that it is from, and until the next one is asked for
  std::optional<std::uint64_t> offset;  // nothing where the tensor is no plain run of bytes in the file
};

class Places {
 public:
  explicit Places(const Checkpoint& checkpoint);

  // Nothing where the bytes are in no file.
  std::optional<Place> of(const Tensor& tensor);

  std::string relative(const std::string& path) const;

 private:
  std::filesystem::path folder_;
  // Tensors come storage by storage and file by file, so one remembered place saves nearly all the work.
  StoragePtr last_storage_;
  std::optional<Storage::Location> last_location_;
  std::string last_path_, last_relative_;
};

}  // namespace ballast::cli
