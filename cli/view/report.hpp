// One HTML file that shows a checkpoint, without a server.
#pragma once

#include <string>

#include "stats_columns.hpp"
#include "subject.hpp"

namespace ballast::cli {

// The bytes of the file. They depend on the subject and the sample only.
std::string make_report(const Session& session, const Subject& subject, std::uint64_t sample, const Progress& progress);

}  // namespace ballast::cli
