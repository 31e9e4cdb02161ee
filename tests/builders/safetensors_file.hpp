// SafetensorsFile: a safetensors file in a line or two, right or wrong, written without the library under test.
//
//   SafetensorsFile().tensor("w", "F32", {2, 2}, 0, 16).data(12)     the offsets as given, and 12 bytes of data
//   SafetensorsFile().tensor("w", "F32", {2, 2})                     offsets and data as they should be
//   SafetensorsFile(R"({"w":^1})").length(99)                        a header to the letter; ^ marks a byte
//
// Names go between quotes as they are, so that "\\u0077" is an escape.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/dtype.hpp>
#include <ballast/open.hpp>

#include "builders/temp_dir.hpp"

namespace ballast::test {

class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(std::string_view header) { this->header(header); }

  SafetensorsFile& tensor(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape,
                          std::uint64_t begin, std::uint64_t end);

  // Behind the data that there are so far, which then has bytes that differ from tensor to tensor.
  SafetensorsFile& tensor(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape);

  template <class T>
  SafetensorsFile& values(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape,
                          const std::vector<T>& values) {
    const std::size_t size = values.size() * sizeof(T);
    tensor(name, dtype, shape, data_.size(), data_.size() + size);
    data_.append(reinterpret_cast<const char*>(values.data()), size);
    return *this;
  }

  SafetensorsFile& metadata(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);

  // Something between the commas of the header's object.
  SafetensorsFile& member(std::string_view text);

  // The whole header. A ^ is taken out, and its byte of the file is mark().
  SafetensorsFile& header(std::string_view text);
  std::optional<std::uint64_t> mark() const { return mark_; }

  // What the first eight bytes say.
  SafetensorsFile& length(std::uint64_t length);
  SafetensorsFile& pad_header_to(std::size_t size);
  SafetensorsFile& data(std::size_t size);
  SafetensorsFile& data(std::string_view bytes);

  std::string header() const;
  std::string text() const;
  std::vector<std::byte> bytes() const;
  Checkpoint open(const OpenOptions& options = {}) const;
  std::string write(const TempDir& folder, std::string_view name) const;  // returns the path

 private:
  std::string members_, data_;
  std::optional<std::string> header_;
  std::optional<std::uint64_t> mark_, length_;
  std::size_t pad_to_ = 0;
};

}  // namespace ballast::test
