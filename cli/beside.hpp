// What verbs that write a model do about the files beside its weights.
#pragma once

#include <string>

#include <ballast/save.hpp>

#include "arguments.hpp"
#include "session.hpp"

namespace ballast::cli {

void add_sidecars_option(Command& verb, bool& no_sidecars);  // --no-sidecars

// A folder that is there, or NAME/.
bool is_folder(const std::string& out);

// Whether files beside the weights go along to `out`: into a folder; or beside shards, if their folder has nothing
// else.
bool takes_sidecars(const std::string& out, const SaveOptions& options);

// Adds the files beside the weights to the plan. `opened` is the model as it was opened, `written` that which the plan
// was made of. Refuses files that are there already, unless they may be overwritten or nothing will be written.
void take_sidecars(const Session& session, SavePlan& plan, const Checkpoint& opened, const Checkpoint& written,
                   bool dry_run);

}  // namespace ballast::cli
