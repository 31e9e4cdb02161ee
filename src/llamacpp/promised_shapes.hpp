// The shapes that tensors must have by the sizes of a model: of the plain parts that most architectures share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ballast/shape.hpp>

#include "llamacpp/names/numbers.hpp"
#include "llamacpp/names/tables.hpp"

namespace ballast::llamacpp {

class PromisedShapes {
 public:
  // The numbers must outlive this object. `tokens` is how many the vocabulary has, if something says it.
  PromisedShapes(const names::Architecture& architecture, const names::Numbers& numbers,
                 std::optional<std::uint64_t> tokens);

  // The shape of a tensor by its role, which is llama.cpp's name for it without "blk.N."; none if no table knows the
  // role or the architecture, or if a size is not said.
  std::optional<Shape> of(std::string_view role, std::uint64_t block) const;

 private:
  const names::Numbers& numbers_;
  std::optional<std::uint64_t> tokens_;
  bool is_plain_;
};

}  // namespace ballast::llamacpp
