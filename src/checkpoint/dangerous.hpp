// What names something dangerous is not gone on with by accident.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// Throws Errc::unsafe, with the first such name and its byte.
void refuse_dangerous(const Checkpoint& checkpoint);

}  // namespace ballast
