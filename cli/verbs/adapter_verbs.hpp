// What the verbs of `adapter` share, and those that have files of their own.
#pragma once

#include <string>

#include <ballast/adapter.hpp>

#include "../arguments.hpp"
#include "../session.hpp"

namespace ballast::cli {

// As the session's options say. The names of the base, where there is one, tell flat names apart.
Adapter open_adapter(const Session& session, const std::string& path, const Checkpoint* base,
                     AdapterLoadOptions options);
void add_name_options(Command& verb, NameOptions& names);  // --architecture, --heads, --kv-heads
void refuse_dangerous(const Session& session, const Checkpoint& checkpoint);

void add_adapter_from_diff(Command& adapter, Session& session);
void add_adapter_merge(Command& adapter, Session& session);

}  // namespace ballast::cli
