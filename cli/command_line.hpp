// The command line: parsed, carried out, and every way it can fail turned into words and an exit code.
#pragma once

namespace ballast::cli {

int run(int argc, char** argv);

}  // namespace ballast::cli
