# Makes ${made}/copyright: our licence, those of the libraries that the command is linked with, as Debian packs them, and
# those of the scripts in the page of `view`.
set(linked libssl-dev libre2-dev libxxhash-dev libzstd-dev zlib1g-dev libdeflate-dev libfmt-dev libhwy-dev libcli11-dev)

# That of the C++ library has the version of the compiler in its name.
file(GLOB standard_library RELATIVE /usr/share/doc /usr/share/doc/libstdc++-[0-9]*-dev)
list(SORT standard_library COMPARE NATURAL ORDER DESCENDING)
list(GET standard_library 0 newest)
list(APPEND linked ${newest})

set(text "Ballast is licensed under the Apache License 2.0. On Debian systems, its text is in
/usr/share/common-licenses/Apache-2.0; elsewhere, it is in the file LICENSE beside this one.

Copyright: the authors of Ballast

The command contains parts of these libraries, whose copyright and licences follow:
")
foreach(package IN LISTS linked)
  string(APPEND text "  ${package}\n")
endforeach()
foreach(package IN LISTS linked)
  file(READ /usr/share/doc/${package}/copyright copyright)
  string(APPEND text "\n-------- ${package} --------\n\n${copyright}")
endforeach()
# The build of the page puts the licences of what is in it at the top of its script: <script>/* … */
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../web/built/page.html page)
string(FIND "${page}" "<script>/*" begin)
string(SUBSTRING "${page}" ${begin} -1 page)
string(FIND "${page}" "*/" end)
math(EXPR length "${end} - 10")
string(SUBSTRING "${page}" 10 ${length} notices)
string(APPEND text "\n-------- the page of view --------\n${notices}")
file(WRITE ${made}/copyright "${text}")
