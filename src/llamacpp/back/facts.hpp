// GgufFacts: what a GGUF says about its model, by keys without the architecture, as values of a config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/json.hpp>

namespace ballast::llamacpp::back {

class GgufFacts {
 public:
  explicit GgufFacts(const Checkpoint& gguf);  // which must outlive this object

  const std::string& architecture() const noexcept { return architecture_; }
  const Checkpoint& gguf() const noexcept { return gguf_; }

  // A value by its key: "rope.freq_base", or "tokenizer.ggml.model". Null if there is none, and for a value that JSON
  // cannot have. A float is the shortest number that is rounded to it.
  Json value(std::string_view key) const;
  std::optional<std::uint64_t> count(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::string text(std::string_view key) const;  // empty if there is none

  // Blocks behind the others that guess several tokens ahead, and all others.
  std::uint64_t guessing_blocks() const;
  std::uint64_t main_blocks() const;

  bool has(std::string_view tensor) const { return gguf_.contains(tensor); }
  bool has_ending(std::string_view ending) const;  // a tensor whose name ends so
  std::optional<std::uint64_t> rows(std::string_view tensor) const;
  std::vector<float> factors(std::string_view tensor) const;  // all values of a small tensor; none if it is not there

 private:
  const MetadataEntry* find(std::string_view key) const;

  const Checkpoint& gguf_;
  std::string architecture_;
};

// The shortest decimal number that is rounded to this float.
double shortest(float value);

}  // namespace ballast::llamacpp::back
