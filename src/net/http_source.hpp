// A file behind an address as a Source, read by ranges.
#pragma once

#include <ballast/source.hpp>

#include <memory>
#include <string>

#include "net/http_client.hpp"

namespace ballast::net {

// Asks for the beginning of the file and, if it may be a zip, at the same time for its end. Errc::not_found if there is
// no such file.
SourcePtr http_source(std::shared_ptr<HttpClient> client, Remote remote);

}  // namespace ballast::net
