// A library of the system's that is found when it is first needed, so that Ballast runs where there is none; there
// until the program ends.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

class SharedLibrary {
 public:
  // `what` it is, for the sentence of Errc::unsupported: "there is no CUDA driver here: libcuda.so.1 was not found".
  SharedLibrary(const char* file, std::string_view what);

  // Makes `function` point to what the library calls `name`.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

  // The same for what not every such library has: null where it has not.
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
