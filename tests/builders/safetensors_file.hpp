// SafetensorsFile: a safetensors file in a line or two, right or wrong, written without the library under test.
//
//   SafetensorsFile().tensor("w", "F32", {2, 2}, 0, 16).data(12)     the offsets as given, and 12 bytes of data
//   SafetensorsFile().tensor("w", "F32", {2, 2})                     right offsets and data
//   SafetensorsFile(R"({"w":^1})").length(99)                        exactly this header; ^ marks a byte
//
// Names are put between quotes without escaping, so that "\\u0077" is an escape.
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

  // Appends a tensor behind the data so far; its bytes differ from tensor to tensor.
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

  // Adds any text as a member of the header's object.
  SafetensorsFile& member(std::string_view text);

  // Sets the whole header. A ^ is removed, and mark() is the byte of the file that it marked.
  SafetensorsFile& header(std::string_view text);
  std::optional<std::uint64_t> mark() const { return mark_; }

  // Sets the length that the first eight bytes state.
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
