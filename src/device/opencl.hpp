// OpenCL devices of every platform, by the loader that is found at run time.
#pragma once

#include <memory>

#include "device/backend.hpp"

namespace ballast::device {

unsigned count_opencl();
std::unique_ptr<Backend> open_opencl(unsigned number);  // of those that there are

}  // namespace ballast::device
