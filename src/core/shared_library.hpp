// A library of the system that is loaded when it is first needed, so that Ballast also runs on a machine without it.
// The library stays loaded until the program ends.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

class SharedLibrary {
 public:
  // `what` names the library in the message of Errc::unsupported: "there is no CUDA driver here: libcuda.so.1 was not
  // found".
  SharedLibrary(const char* file, std::string_view what);

  // Makes `function` point to the function that the library exports as `name`.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

  // The same for a function that not every version of the library has: null if it is missing.
  template <class Function>
  void find_if_there(Function*& function, const char* name) const noexcept {
    function = reinterpret_cast<Function*>(address_if_there(name));
  }

 private:
  void* address_of(const char* name) const;
  void* address_if_there(const char* name) const noexcept;

  std::string file_;
  void* library_;
};

}  // namespace ballast
