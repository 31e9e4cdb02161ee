# Writes a C++ file with the page of `ballast view` in it: the template, the style sheet, and the scripts as one program.
#
#   cmake -D OUT=page_data.cpp -D PAGE=page.html -D STYLE=page.css "-D SCRIPTS=a.js;b.js" -P embed_page.cmake
#
# Everything goes through hexadecimal digits, because lists and escapes of CMake would change a text.
cmake_minimum_required(VERSION 3.25)

# The bytes of a file as the elements of an array. A file of a hundred kilobytes takes a fifth of a second.
function(elements_of hex out)
  string(REGEX REPLACE "(................................)" "\\1\n" lines "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," elements "${lines}")
  set(${out} "${elements}" PARENT_SCOPE)
endfunction()

# The scripts share one scope that is not the page's.
string(HEX "'use strict';\n(() => {\n" script)
foreach(file IN LISTS SCRIPTS)
  file(READ ${file} text HEX)
  string(APPEND script "${text}")
endforeach()
string(HEX "})();\n" end)
string(APPEND script "${end}")
file(READ ${STYLE} style HEX)
file(READ ${PAGE} page HEX)

set(source "// Made from web/ by cmake/embed_page.cmake.\n#include \"page_data.hpp\"\n\nnamespace ballast::cli {\nnamespace {\n\n")
foreach(part page style script)
  elements_of("${${part}}" elements)
  string(APPEND source "constexpr unsigned char k_${part}[] = {\n${elements}\n};\n")
endforeach()
string(APPEND source "\ntemplate <std::size_t n>\nstd::string_view text_of(const unsigned char (&bytes)[n]) {\n"
  "  return {reinterpret_cast<const char*>(bytes), n};\n}\n\n}  // namespace\n\n"
  "PageData page_data() { return {text_of(k_page), text_of(k_style), text_of(k_script)}; }\n\n}  // namespace ballast::cli\n")
file(WRITE ${OUT} "${source}")
