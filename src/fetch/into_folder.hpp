// Files into a folder of the user's. Those of the Hub get the small records beside them that the official client keeps
// (.cache/huggingface/download/PATH.metadata), so that both know what is there.
#pragma once

#include <ballast/fetch.hpp>

#include <string>
#include <vector>

#include "fetch/into_cache.hpp"

namespace ballast::fetching {

struct NamedRemote {
  std::string name;
  net::Remote remote;
};

FetchReport into_folder(const HubJob& job);

// From servers that tell no digest.
FetchReport into_folder(net::HttpClient& client, std::vector<NamedRemote> remotes, const FetchOptions& options);

}  // namespace ballast::fetching
