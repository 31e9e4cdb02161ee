// How many columns of a terminal a character takes: 0, 1 or 2.
#pragma once

#include <cstddef>

namespace ballast::cli {

std::size_t width_of(char32_t code) noexcept;

}  // namespace ballast::cli
