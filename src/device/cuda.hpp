// GPUs through the CUDA driver, which is loaded at run time; the toolkit is not needed.
#pragma once

#include <memory>

#include "device/backend.hpp"

namespace ballast::device {

unsigned count_cuda();
std::unique_ptr<Backend> open_cuda(unsigned number);  // `number` counts the devices from 0

}  // namespace ballast::device
