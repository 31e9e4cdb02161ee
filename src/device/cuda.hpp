// GPUs by the CUDA driver that is found at run time; the toolkit is not needed.
#pragma once

#include <memory>

#include "device/backend.hpp"

namespace ballast::device {

unsigned count_cuda();
std::unique_ptr<Backend> open_cuda(unsigned number);  // of those that there are

}  // namespace ballast::device
