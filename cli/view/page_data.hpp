// The page of `view` as it lies in the program: web/built/page.html, which the build puts there. The text lives as long
// as the program; nothing touches it before the page is made.
#pragma once

#include <string_view>

namespace ballast::cli {

// HTML with one <style>, one <script>, and marks where the rest goes.
std::string_view page_data();

}  // namespace ballast::cli
