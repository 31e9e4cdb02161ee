// SafetensorsFile: a safetensors file in a line or two, right or wrong, written without the library under test.
//
//   SafetensorsFile().tensor("w", "F32", {2, 2}, 0, 16).data(12)     the offsets as given, and 12 bytes of data
//   SafetensorsFile().tensor("w", "F32", {2, 2})                     offsets and data as they should be
//   SafetensorsFile(R"({"w":^1})").length(99)                        a header to the letter; ^ marks a byte
//
// Names go between quotes as they are, so that "\\u0077" is an escape.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/dtype.hpp>
#include <ballast/open.hpp>

#include "support/temp_dir.hpp"

namespace ballast::test {

class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(std::string_view header) { this->header(header); }

  SafetensorsFile& tensor(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape,
                          std::uint64_t begin, std::uint64_t end) {
    std::string text = "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    return member(text);
  }

  // Behind the data that there are so far, which then has bytes that differ from tensor to tensor.
  SafetensorsFile& tensor(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : shape) count *= dim;
    const std::uint64_t size = bytes_of(dtype_from_name(dtype).value(), count).value();
    tensor(name, dtype, shape, data_.size(), data_.size() + size);
    for (std::uint64_t i = 0; i < size; ++i) data_ += static_cast<char>(data_.size() * 37 + 11);
    return *this;
  }

  template <class T>
  SafetensorsFile& values(std::string_view name, std::string_view dtype, const std::vector<std::uint64_t>& shape,
                          const std::vector<T>& values) {
    const std::size_t size = values.size() * sizeof(T);
    tensor(name, dtype, shape, data_.size(), data_.size() + size);
    data_.append(reinterpret_cast<const char*>(values.data()), size);
    return *this;
  }

  SafetensorsFile& metadata(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
    std::string text = "\"__metadata__\":{";
    for (const auto& [key, value] : pairs) {
      if (text.back() != '{') text += ',';
      text += "\"" + std::string(key) + "\":\"" + std::string(value) + "\"";
    }
    return member(text + "}");
  }

  // Something between the commas of the header's object.
  SafetensorsFile& member(std::string_view text) {
    if (!members_.empty()) members_ += ',';
    members_ += text;
    return *this;
  }

  // The whole header. A ^ is taken out, and its byte of the file is mark().
  SafetensorsFile& header(std::string_view text) {
    header_ = text;
    if (const auto mark = text.find('^'); mark != std::string_view::npos) {
      header_->erase(mark, 1);
      mark_ = 8 + mark;
    }
    return *this;
  }
  std::optional<std::uint64_t> mark() const { return mark_; }

  // What the first eight bytes say.
  SafetensorsFile& length(std::uint64_t length) {
    length_ = length;
    return *this;
  }

  SafetensorsFile& pad_header_to(std::size_t size) {
    pad_to_ = size;
    return *this;
  }

  SafetensorsFile& data(std::size_t size) {
    data_.assign(size, '\0');
    return *this;
  }
  SafetensorsFile& data(std::string_view bytes) {
    data_ = bytes;
    return *this;
  }

  std::string header() const {
    std::string text = header_.value_or("{" + members_ + "}");
    if (text.size() < pad_to_) text.resize(pad_to_, ' ');
    return text;
  }

  std::string text() const {
    const std::string header = this->header();
    const std::uint64_t length = length_.value_or(header.size());
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data_;
  }

  std::vector<std::byte> bytes() const {
    const std::string text = this->text();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  Checkpoint open(const OpenOptions& options = {}) const { return open_bytes(bytes(), "file", options); }

  // Returns the path.
  std::string write(const TempDir& folder, std::string_view name) const { return folder.write(name, text()); }

 private:
  std::string members_, data_;
  std::optional<std::string> header_;
  std::optional<std::uint64_t> mark_, length_;
  std::size_t pad_to_ = 0;
};

inline std::string bytes_of_tensor(const Tensor& tensor) {
  std::string bytes(tensor.nbytes(), '\0');
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

template <class T>
std::vector<T> values_of_tensor(const Tensor& tensor) {
  std::vector<T> values(tensor.nbytes() / sizeof(T));
  tensor.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace ballast::test
