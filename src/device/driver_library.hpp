// A driver's library, found when it is first needed, so that Ballast runs where there is none; there until the program
// ends.
#pragma once

#include <string>
#include <string_view>

namespace ballast::device {

class DriverLibrary {
 public:
  // Errc::unsupported, "there is no CUDA driver here: libcuda.so.1 was not found".
  DriverLibrary(const char* file, std::string_view driver);

  // Makes `function` point to what the library calls `name`.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  std::string file_;
  void* library_;
};

}  // namespace ballast::device
