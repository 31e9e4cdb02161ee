// Where a tensor's bytes lie, for a reader of our output: a file, named relative to the target, and a byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

#include "json_writer.hpp"

namespace ballast::cli {

struct Place {
  std::string_view file;                // valid until its Places is asked for the next one or destroyed
  std::optional<std::uint64_t> offset;  // empty if the tensor is not a plain run of bytes in the file
};

class Places {
 public:
  explicit Places(const Checkpoint& checkpoint);

  // Empty if the bytes are not in a file.
  std::optional<Place> of(const Tensor& tensor);

  std::string relative(const std::string& path) const;

 private:
  std::filesystem::path folder_;
  // Tensors come storage by storage and file by file, so remembering the last place saves nearly all the work.
  StoragePtr last_storage_;
  std::optional<Storage::Location> last_location_;
  std::string last_path_, last_relative_;
};

// The field "files": each with its name and its bytes.
void write_files(JsonWriter& json, const Checkpoint& checkpoint);

}  // namespace ballast::cli
