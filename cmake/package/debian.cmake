# Makes what only the .deb has: the pages as Debian compresses them, and notes for lintian.
function(compress from to)
  execute_process(COMMAND gzip -9nc ${from} OUTPUT_FILE ${to} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

compress(${source}/docs/ballast.1 ${made}/ballast.1.gz)

# CMake takes the time from SOURCE_DATE_EPOCH if that is set, which makes the package the same each time.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${made}/changelog "ballast (${version}) unstable; urgency=medium

  * What changed is in CHANGELOG.md, in the sources.

 -- ${contact}  ${date}
")
compress(${made}/changelog ${made}/changelog.gz)

file(MAKE_DIRECTORY ${made}/overrides)
file(COPY_FILE ${source}/cmake/package/lintian-overrides ${made}/overrides/ballast)
