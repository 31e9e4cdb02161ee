// ImportanceFile: an importance matrix in a line or two, right or wrong, in the older format of llama-imatrix or as
// GGUF.
//
//   ImportanceFile().entry("blk.0.attn_q.weight", 2, {2, 4}).end(6, "text.txt").text()     means 1 and 2
//   ImportanceFile().count(1u << 30)                                                       a count that lies
//   importance_gguf().append_data(...)                                                     with the metadata it needs
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builders/gguf_file.hpp"

namespace ballast::test {

class ImportanceFile {
 public:
  static std::string number(std::int32_t value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string floats(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  ImportanceFile& entry(std::string_view name, std::int32_t calls, const std::vector<float>& values) {
    return raw_entry(number(static_cast<std::int32_t>(name.size())) + std::string(name) + number(calls) +
                     number(static_cast<std::int32_t>(values.size())) + floats(values));
  }
  ImportanceFile& raw_entry(std::string_view bytes) {
    entries_ += bytes;
    ++entry_count_;
    return *this;
  }
  ImportanceFile& end(std::int32_t chunks, std::string_view dataset) {
    end_ = number(chunks) + number(static_cast<std::int32_t>(dataset.size())) + std::string(dataset);
    return *this;
  }
  ImportanceFile& raw_end(std::string_view bytes) { return end_ = bytes, *this; }
  ImportanceFile& count(std::int32_t count) { return said_count_ = count, *this; }

  std::string text() const { return number(said_count_.value_or(entry_count_)) + entries_ + end_; }

 private:
  std::string entries_, end_;
  std::int32_t entry_count_ = 0;
  std::optional<std::int32_t> said_count_;
};

inline GgufBuilder importance_fields() {
  return GgufBuilder()
      .kv("general.type", "imatrix")
      .strings("imatrix.datasets", {"text.txt", "more.txt"})
      .kv("imatrix.chunk_count", 6u)
      .kv("imatrix.chunk_size", 512u);
}

// One entry, with the sums of `matrices` matrices after each other, and the counts of each.
inline GgufBuilder importance_gguf(std::string_view name, const std::vector<float>& sums,
                                   const std::vector<float>& counts) {
  std::string data = ImportanceFile::floats(sums);
  data.resize((data.size() + 31) / 32 * 32, '\0');
  const std::uint64_t matrices = counts.size();
  return importance_fields()
      .tensor_at(std::string(name) + ".in_sum2", kF32, {sums.size() / matrices, matrices}, 0)
      .tensor_at(std::string(name) + ".counts", kF32, {1, matrices}, data.size())
      .data(data + ImportanceFile::floats(counts));
}

}  // namespace ballast::test
