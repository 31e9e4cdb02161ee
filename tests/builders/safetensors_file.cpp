#include "builders/safetensors_file.hpp"

namespace ballast::test {

SafetensorsFile& SafetensorsFile::tensor(std::string_view name, std::string_view dtype,
                                         const std::vector<std::uint64_t>& shape, std::uint64_t begin,
                                         std::uint64_t end) {
  std::string text = "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  return member(text);
}

SafetensorsFile& SafetensorsFile::tensor(std::string_view name, std::string_view dtype,
                                         const std::vector<std::uint64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : shape) count *= dim;
  const std::uint64_t size = bytes_of(dtype_from_name(dtype).value(), count).value();
  tensor(name, dtype, shape, data_.size(), data_.size() + size);
  for (std::uint64_t i = 0; i < size; ++i) data_ += static_cast<char>(data_.size() * 37 + 11);
  return *this;
}

SafetensorsFile& SafetensorsFile::metadata(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : pairs) {
    if (text.back() != '{') text += ',';
    text += "\"" + std::string(key) + "\":\"" + std::string(value) + "\"";
  }
  return member(text + "}");
}

SafetensorsFile& SafetensorsFile::member(std::string_view text) {
  if (!members_.empty()) members_ += ',';
  members_ += text;
  return *this;
}

SafetensorsFile& SafetensorsFile::header(std::string_view text) {
  header_ = text;
  if (const auto mark = text.find('^'); mark != std::string_view::npos) {
    header_->erase(mark, 1);
    mark_ = 8 + mark;
  }
  return *this;
}

SafetensorsFile& SafetensorsFile::length(std::uint64_t length) {
  length_ = length;
  return *this;
}

SafetensorsFile& SafetensorsFile::pad_header_to(std::size_t size) {
  pad_to_ = size;
  return *this;
}

SafetensorsFile& SafetensorsFile::data(std::size_t size) {
  data_.assign(size, '\0');
  return *this;
}

SafetensorsFile& SafetensorsFile::data(std::string_view bytes) {
  data_ = bytes;
  return *this;
}

std::string SafetensorsFile::header() const {
  std::string text = header_.value_or("{" + members_ + "}");
  if (text.size() < pad_to_) text.resize(pad_to_, ' ');
  return text;
}

std::string SafetensorsFile::text() const {
  const std::string header = this->header();
  const std::uint64_t length = length_.value_or(header.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data_;
}

std::vector<std::byte> SafetensorsFile::bytes() const {
  const std::string text = this->text();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Checkpoint SafetensorsFile::open(const OpenOptions& options) const { return open_bytes(bytes(), "file", options); }

std::string SafetensorsFile::write(const TempDir& folder, std::string_view name) const {
  return folder.write(name, text());
}

}  // namespace ballast::test
