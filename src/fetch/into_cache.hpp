// Files of the Hub into its cache, in the layout of the official client.
#pragma once

#include <ballast/fetch.hpp>

#include <vector>

#include "stores/hub/files.hpp"

namespace ballast::fetching {

// What is fetched from the Hub, wherever it goes.
struct HubJob {
  const hub::HubFiles& files;
  net::HttpClient& client;
  const hub::Revision& revision;
  std::vector<hub::Entry> entries;
  const FetchOptions& options;
};

FetchReport into_cache(const HubJob& job);

}  // namespace ballast::fetching
