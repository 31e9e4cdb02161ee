// Errors of quantized weights that are found while their parts are read.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

#include "core/text.hpp"

namespace ballast {

// Errc::malformed: "FILE: the quantized weight "x" …", with the file that the part lies in, if it lies in one.
inline Error weight_error(std::string_view weight, const std::string& what, const Tensor& part) {
  Error error(Errc::malformed, fmt::format("the quantized weight {} {}", quote(weight), what));
  if (const auto place = part.storage() ? part.storage()->location() : std::nullopt) error.in(place->file);
  return error;
}

}  // namespace ballast
