# Writes a C++ file with the page of `ballast view` in it.
#
#   cmake -D OUT=page_data.cpp -D PAGE=web/built/page.html -P embed_page.cmake
#
# The page goes through hexadecimal digits, because lists and escapes of CMake would change a text.
cmake_minimum_required(VERSION 3.25)

file(READ ${PAGE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")
file(WRITE ${OUT} "// Made from web/built/page.html by cmake/embed_page.cmake.
#include \"page_data.hpp\"

namespace ballast::cli {
namespace {

constexpr unsigned char kPage[] = {
${bytes}
};

}  // namespace

std::string_view page_data() { return {reinterpret_cast<const char*>(kPage), sizeof kPage}; }

}  // namespace ballast::cli
")
