// The verbs of `adapter` that have files of their own.
#pragma once

#include "../arguments.hpp"
#include "../session.hpp"

namespace ballast::cli {

void add_adapter_from_diff(Command& adapter, Session& session);
void add_adapter_merge(Command& adapter, Session& session);

}  // namespace ballast::cli
