// OpenCL devices of every platform, through the loader, which is loaded at run time.
#pragma once

#include <memory>

#include "device/backend.hpp"

namespace ballast::device {

unsigned count_opencl();
std::unique_ptr<Backend> open_opencl(unsigned number);  // `number` counts the devices of all platforms from 0

}  // namespace ballast::device
