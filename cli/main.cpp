#include "command_line.hpp"

int main(int argc, char** argv) { return ballast::cli::run(argc, argv); }
