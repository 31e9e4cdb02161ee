// Numbers: what a checkpoint says about its model, as far as the changes of values depend on it: heads, experts, sizes.
// A GGUF says it in its typed metadata; a checkpoint made from one keeps the same keys as text. The converter's keys
// are set before a model of Hugging Face is converted, so both ways ask for the same numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/names.hpp>

#include "llamacpp/names/match.hpp"

namespace ballast::names {

class Numbers {
 public:
  // All of them must outlive this object.
  Numbers(const Checkpoint& checkpoint, const Architecture& architecture, const NameOptions& options);

  const std::string& heads_key() const noexcept { return heads_key_; }
  const std::string& keys_key() const noexcept { return keys_key_; }

  // Throws Errc::invalid_argument if nothing says it.
  std::uint64_t heads(std::uint64_t block) const;
  std::uint64_t heads_of_keys(std::uint64_t block) const;  // as many as those of queries, if only those are said

  std::optional<std::uint64_t> find_heads(std::uint64_t block) const;
  // Whether the number of keys' heads is only an assumption: nothing in the file says heads, and an option may have
  // been forgotten.
  bool assumes_heads_of_keys(std::uint64_t block) const;
  [[noreturn]] void throw_unknown_keys() const;

  // A number by its key without the architecture: "ssm.group_count". Throws Errc::invalid_argument if nothing says it,
  // or if it is zero.
  std::uint64_t get(std::string_view key) const;
  std::optional<std::uint64_t> find(std::string_view key, std::uint64_t block = 0) const;

  // The blocks before those that predict further tokens; 0 if nothing says it.
  std::uint64_t main_blocks() const;

 private:
  std::optional<std::uint64_t> find_whole(std::string_view key, std::uint64_t block) const;
  std::optional<std::uint64_t> find_heads_of_keys(std::uint64_t block) const;

  const Checkpoint& checkpoint_;
  const NameOptions& options_;
  std::string prefix_, heads_key_, keys_key_;
};

}  // namespace ballast::names
