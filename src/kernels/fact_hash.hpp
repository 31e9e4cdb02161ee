// FactHash: a digest of texts and numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/digest.hpp"

namespace ballast::kernels {

class FactHash {
 public:
  // The length comes first, so that "ab" "c" differs from "a" "bc".
  void add(std::string_view text) {
    add(text.size());
    hash_.update(std::as_bytes(std::span(text)));
  }
  void add(std::uint64_t number) { hash_.update(std::as_bytes(std::span(&number, 1))); }

  std::uint64_t digest() const noexcept { return hash_.digest_64(); }

 private:
  Xxh3 hash_;
};

}  // namespace ballast::kernels
