// The report of scan for programs.
#pragma once

#include <string>
#include <vector>

#include <ballast/scan.hpp>

#include "../output.hpp"

namespace ballast::cli {

// ballast.scan/2. Several targets, or a folder, have a list of files, too.
void write_scan_json(Output& out, const std::vector<std::string>& targets, const ScanReport& report);

// SARIF 2.1.0: a result for everything that is dangerous (error) or unknown (warning).
void write_scan_sarif(Output& out, const ScanReport& report);

}  // namespace ballast::cli
