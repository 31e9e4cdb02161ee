// What `info` shows of a folder that has several checkpoints: each in a line, with how it is opened.
#pragma once

#include <string>
#include <vector>

#include "../json_writer.hpp"
#include "../session.hpp"

namespace ballast::cli {

// Writes into `json`, or, if that is null, lines of text. Returns the exit code: that of the first target that cannot
// be opened.
int show_choices(Session& session, const std::string& folder, const std::vector<std::string>& targets,
                 JsonWriter* json);

}  // namespace ballast::cli
