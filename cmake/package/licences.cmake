# Makes ${made}/copyright: our licence, and those of the libraries that the command is linked with, as Debian packs them.
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
file(WRITE ${made}/copyright "${text}")
