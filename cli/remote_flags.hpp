// The flags for targets that are addresses.
#pragma once

#include <string>
#include <vector>

#include <ballast/remote.hpp>

#include "arguments.hpp"

namespace ballast::cli {

struct RemoteFlags {
  RemoteOptions options;
  std::string variant, subfolder;
};

void add_remote_options(Command& root, RemoteFlags& flags);

struct Host;

// The options with Ctrl-C, or the host, as what stops waiting.
RemoteOptions remote_options(const RemoteFlags& flags, const Host* host);

}  // namespace ballast::cli
