// A page on this machine, for one browser, until Ctrl-C.
#pragma once

#include <cstdint>

#include "subject.hpp"

namespace ballast::cli {

struct ServeOptions {
  std::uint16_t port = 0;     // 0: any that is free
  bool opens_browser = true;  // if there is one
};

// Returns after Ctrl-C, or when the host says so.
void serve(const Session& session, const Subject& subject, const ServeOptions& options);

}  // namespace ballast::cli
