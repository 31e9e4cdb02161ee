#include "core/shared_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>
#include <ballast/error.hpp>

namespace ballast {

SharedLibrary::SharedLibrary(const char* file, std::string_view what)
    : file_(file), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ != nullptr) return;
  const std::string_view said = dlerror();
  const bool is_absent = said.find("No such file") != std::string_view::npos;
  throw Error(Errc::unsupported, fmt::format("there is no {} here: {} {}", what, file,
                                             is_absent ? "was not found" : fmt::format("cannot be loaded: {}", said)));
}

void* SharedLibrary::address_if_there(const char* name) const noexcept { return dlsym(library_, name); }

void* SharedLibrary::address_of(const char* name) const {
  void* address = address_if_there(name);
  if (address == nullptr)
    throw Error(Errc::unsupported, fmt::format("{} is older than Ballast can use: it has no {}", file_, name));
  return address;
}

}  // namespace ballast
