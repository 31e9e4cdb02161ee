// The name of this machine, as its user knows it; "?" if the system does not say it.
#pragma once

#include <string>

namespace ballast {

std::string host_name();

}  // namespace ballast
