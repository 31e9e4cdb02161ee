// The report of scan, for programs.
#pragma once

#include <string>
#include <vector>

#include <ballast/scan.hpp>

#include "../output.hpp"

namespace ballast::cli {

// Writes ballast.scan/2. For several targets, or for a folder, the document also has a list of files.
void write_scan_json(Output& out, const std::vector<std::string>& targets, const ScanReport& report);

// Writes SARIF 2.1.0: a result for everything that is dangerous (error) or unknown (warning).
void write_scan_sarif(Output& out, const ScanReport& report);

}  // namespace ballast::cli
