# Writes a C++ file with the page of `ballast view` in it: the template, the style sheet, and the scripts as one program.
#
#   cmake -D OUT=page_data.cpp -D PAGE=page.html -D STYLE=page.css "-D SCRIPTS=a.js;b.js" -P embed_page.cmake
#
# Everything goes through hexadecimal digits, because lists and escapes of CMake would change a text.
cmake_minimum_required(VERSION 3.25)

# The bytes of files as the elements of an array, without indentation and without the lines that are comments: these are
# for readers of the sources. No text of the page goes over several lines.
function(bytes_of out)
  set(hex "")
  foreach(file IN LISTS ARGN)
    file(READ ${file} text HEX)
    string(APPEND hex "${text}")
  endforeach()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\1," bytes "0a${hex}")
  string(REGEX REPLACE "0a,(20,)+" "0a," bytes "${bytes}")
  set(rest_of_line "(([1-9a-f][0-9a-f]|0[0-9b-f]),)*")
  string(REGEX REPLACE "0a,(2f,2f,|2f,2a,|2a,)${rest_of_line}" "" bytes "${bytes}")
  string(REGEX REPLACE "(0a,)+" "0a," bytes "${bytes}")
  string(REGEX REPLACE "^0a," "" bytes "${bytes}")
  set(${out} "${bytes}" PARENT_SCOPE)
endfunction()

function(elements_of bytes out)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])," "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")
  set(${out} "${bytes}" PARENT_SCOPE)
endfunction()

bytes_of(page_bytes ${PAGE})
bytes_of(style_bytes ${STYLE})
bytes_of(script_bytes ${SCRIPTS})
# In a style sheet, no space beside : ; , { or } means anything but in front of a colon.
string(REGEX REPLACE "(20,|0a,)*(7b,|7d,|3b,|2c,)(20,|0a,)*" "\\2" style_bytes "${style_bytes}")
string(REGEX REPLACE "3a,20," "3a," style_bytes "${style_bytes}")
# No text of a script has an arrow in it, and no comment ends with a bracket that opens, or with a comma.
string(REGEX REPLACE "(28,|5b,|7b,|2c,)0a," "\\1" script_bytes "${script_bytes}")
string(REGEX REPLACE "20,3d,3e,20," "3d,3e," script_bytes "${script_bytes}")
foreach(part page style script)
  elements_of("${${part}_bytes}" ${part})
endforeach()

set(source "// Made from web/ by cmake/embed_page.cmake.\n#include \"page_data.hpp\"\n\nnamespace ballast::cli {\nnamespace {\n\n")
foreach(part page style script)
  string(APPEND source "constexpr unsigned char k_${part}[] = {\n${${part}}\n};\n")
endforeach()
string(APPEND source "\ntemplate <std::size_t n>\nstd::string_view text_of(const unsigned char (&bytes)[n]) {\n"
  "  return {reinterpret_cast<const char*>(bytes), n};\n}\n\n}  // namespace\n\n"
  "PageData page_data() { return {text_of(k_page), text_of(k_style), text_of(k_script)}; }\n\n}  // namespace ballast::cli\n")
file(WRITE ${OUT} "${source}")
