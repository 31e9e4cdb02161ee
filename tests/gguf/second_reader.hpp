// A second reader of GGUF 3, for what we write: it shares no code with the first, knows nothing of ballast's types, and
// is as strict as ggml's own (names, order, offsets, padding).
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ballast::test {

struct SecondReader {
  struct Value {
    std::string key;
    int type = 0, element_type = -1;
    std::vector<std::string> items;  // the bytes of each item; one item if the value is not an array
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dims;  // fastest first
    int type = 0;
    std::string bytes;
  };
  std::vector<Value> values;
  std::vector<Tensor> tensors;

  explicit SecondReader(const std::string& file) : file_(file) {
    expect(take(4) == "GGUF", "magic");
    expect(number(4) == 3, "version");
    const std::uint64_t tensor_count = number(8), value_count = number(8);
    for (std::uint64_t i = 0; i < value_count; ++i) read_value();
    for (std::uint64_t i = 0; i < tensor_count; ++i) read_info();
    read_data();
  }

  std::uint64_t uint_of(const std::string& key) const {
    for (const Value& value : values) {
      if (value.key == key) return little_endian(value.items.at(0));
    }
    throw std::runtime_error("no key " + key);
  }

 private:
  static void expect(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error("the second reader finds a wrong " + what);
  }

  static std::uint64_t little_endian(const std::string& bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value * 256 + static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::string take(std::uint64_t size) {
    expect(size <= file_.size() - at_, "length");
    at_ += size;
    return file_.substr(at_ - size, size);
  }
  std::uint64_t number(std::size_t size) { return little_endian(take(size)); }
  std::string string() { return take(number(8)); }

  std::string scalar(int type) {
    static const std::map<int, std::size_t> sizes = {{0, 1}, {1, 1}, {2, 2},  {3, 2},  {4, 4}, {5, 4},
                                                     {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
    if (type == 8) return string();
    return type == 9 ? array() : take(sizes.at(type));
  }

  // Returns an array inside of an array, as it lies in the file.
  std::string array() {
    const std::size_t begin = at_;
    const int type = static_cast<int>(number(4));
    for (std::uint64_t left = number(8); left > 0; --left) scalar(type);
    return file_.substr(begin, at_ - begin);
  }

  void read_value() {
    Value value;
    value.key = string();
    expect(!value.key.empty(), "key");
    for (const Value& other : values) expect(other.key != value.key, "key, which is there twice");
    value.type = static_cast<int>(number(4));
    std::uint64_t count = 1;
    if (value.type == 9) {
      value.element_type = static_cast<int>(number(4));
      count = number(8);
    }
    for (std::uint64_t i = 0; i < count; ++i)
      value.items.push_back(scalar(value.type == 9 ? value.element_type : value.type));
    if (value.key == "general.alignment") alignment_ = little_endian(value.items.at(0));
    values.push_back(std::move(value));
  }

  void read_info() {
    Tensor tensor;
    tensor.name = string();
    expect(tensor.name.size() < 64, "name");
    const std::uint64_t rank = number(4);
    expect(rank <= 4, "rank");
    for (std::uint64_t i = 0; i < rank; ++i) tensor.dims.push_back(number(8));
    tensor.type = static_cast<int>(number(4));
    offsets_.push_back(number(8));
    tensors.push_back(std::move(tensor));
  }

  // The block sizes of ggml's types, by number.
  static std::pair<std::uint64_t, std::uint64_t> block_of(int type) {
    static const std::map<int, std::pair<std::uint64_t, std::uint64_t>> blocks = {
        {0, {1, 4}},      {1, {1, 2}},      {2, {32, 18}},   {3, {32, 20}},    {6, {32, 22}},    {7, {32, 24}},
        {8, {32, 34}},    {9, {32, 36}},    {10, {256, 84}}, {11, {256, 110}}, {12, {256, 144}}, {13, {256, 176}},
        {14, {256, 210}}, {15, {256, 292}}, {16, {256, 66}}, {17, {256, 74}},  {18, {256, 98}},  {19, {256, 50}},
        {20, {32, 18}},   {21, {256, 110}}, {22, {256, 82}}, {23, {256, 136}}, {24, {1, 1}},     {25, {1, 2}},
        {26, {1, 4}},     {27, {1, 8}},     {28, {1, 8}},    {29, {256, 56}},  {30, {1, 2}},     {34, {256, 54}},
        {35, {256, 66}},  {39, {32, 17}},   {40, {64, 36}},  {41, {128, 18}},  {42, {64, 18}}};
    return blocks.at(type);
  }

  void expect_padding() {
    while (at_ % alignment_ != 0) expect(take(1)[0] == '\0', "padding");
  }

  void read_data() {
    expect_padding();
    const std::size_t begin = at_;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      expect(offsets_[i] == at_ - begin, "offset");
      const auto [elements, bytes] = block_of(tensors[i].type);
      std::uint64_t count = 1;
      for (const std::uint64_t dim : tensors[i].dims) count *= dim;
      expect((tensors[i].dims.empty() ? 1 : tensors[i].dims[0]) % elements == 0, "row");
      tensors[i].bytes = take(count / elements * bytes);
      expect_padding();
    }
    expect(at_ == file_.size(), "end");
  }

  const std::string& file_;
  std::size_t at_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace ballast::test
