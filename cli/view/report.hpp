// One HTML file that shows a checkpoint, without a server.
#pragma once

#include <string>
#include <vector>

#include "stats_columns.hpp"
#include "subject.hpp"

namespace ballast::cli {

struct Report {
  std::string page;                // the bytes of the file; they depend on the subject and the sample only
  std::vector<std::string> notes;  // what the page says it does not have, and why
};

// What cannot be read is said in the page, and the rest is shown. Of an address, the page has no query: that of a
// signed one is a secret, and a report is made to be given away.
Report make_report(const Session& session, Subject subject, std::uint64_t sample, const Progress& progress);

}  // namespace ballast::cli
