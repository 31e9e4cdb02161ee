// What check() finds in one target.
#pragma once

#include <string>

#include <ballast/check.hpp>
#include <ballast/error.hpp>

namespace ballast {

// A checkpoint. Without `scans`, a folder around it was scanned.
CheckedTarget check_checkpoint(const std::string& target, const CheckOptions& options, bool scans);

// A folder that holds several checkpoints, or folders with such: what a scan finds in all of its files. `checkpoints`
// is how many are checked on their own.
CheckedTarget check_folder(const std::string& target, std::uint64_t checkpoints, const CheckOptions& options);

// A target that cannot be looked at at all.
CheckedTarget unchecked(const std::string& target, const Error& error, const CheckOptions& options);

}  // namespace ballast
