// Where the Hub is, who asks, and where its cache lies: from the options of the caller, or from the environment
// variables and files that the Hub's own programs use.
#pragma once

#include <ballast/remote.hpp>

#include <string>
#include <vector>

namespace ballast::hub {

struct Settings {
  std::string endpoint;  // without a slash at its end
  std::string cache;     // the folder of all repositories
  std::string token;     // empty if there is none
  bool is_offline = false;
  std::string offline_because;  // "HF_HUB_OFFLINE is set"
  bool makes_links = true;      // or files stand in the snapshots themselves
};

Settings settings_of(const HubOptions& options);

// The options with the time-outs of the Hub's own variables, unless the caller has chosen others.
HttpOptions http_options(HttpOptions given);

}  // namespace ballast::hub
