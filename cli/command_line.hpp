// The command line: parsed, carried out, and every way it can fail turned into words and an exit code.
#pragma once

#include "program.hpp"

namespace ballast::cli {

int run(int argc, char** argv, const Program& program = {});

}  // namespace ballast::cli
