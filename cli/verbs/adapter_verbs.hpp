// The functions that the verbs of `adapter` share, and the verbs that have files of their own.
#pragma once

#include <string>

#include <ballast/adapter.hpp>

#include "../arguments.hpp"
#include "../session.hpp"

namespace ballast::cli {

// Opened with the session's options. If there is a base, it says what files of other dialects do not.
Adapter open_adapter(const Session& session, const std::string& path, const Checkpoint* base,
                     AdapterLoadOptions options);
// --architecture, --heads and --kv-heads, in a group of their own that is rarely needed.
void add_name_options(Command& verb, NameOptions& names);
void show_info(Session& session, const Adapter& adapter);

void add_adapter_from_diff(Command& adapter, Session& session);
void add_adapter_merge(Command& adapter, Session& session);

}  // namespace ballast::cli
