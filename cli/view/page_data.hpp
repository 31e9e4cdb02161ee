// The page of `view` as it lies in the program: what web/ has, which the build puts there. The texts live as long as
// the program; nothing touches them before the page is made.
#pragma once

#include <cstddef>
#include <string_view>

namespace ballast::cli {

struct PageData {
  std::string_view page;    // HTML with marks where the rest goes
  std::string_view style;   // CSS
  std::string_view script;  // JavaScript, of which all files are one
};
PageData page_data();

}  // namespace ballast::cli
