#include "device/driver_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>
#include <ballast/error.hpp>

namespace ballast::device {

DriverLibrary::DriverLibrary(const char* file, std::string_view driver)
    : file_(file), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ != nullptr) return;
  const std::string_view said = dlerror();
  const bool is_absent = said.find("No such file") != std::string_view::npos;
  throw Error(Errc::unsupported, fmt::format("there is no {} here: {} {}", driver, file,
                                             is_absent ? "was not found" : fmt::format("cannot be loaded: {}", said)));
}

void* DriverLibrary::address_of(const char* name) const {
  void* address = dlsym(library_, name);
  if (address == nullptr)
    throw Error(Errc::unsupported, fmt::format("{} is older than Ballast can use: it has no {}", file_, name));
  return address;
}

}  // namespace ballast::device
