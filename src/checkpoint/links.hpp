// Links beside a checkpoint, and whether they lead out of its folder.
#pragma once

#include <string>

#include <ballast/source.hpp>

namespace ballast {

// Whether the file is a link to a file in another folder. A link to where the Hub's cache keeps the file is not.
bool leads_out(const Files& files, const std::string& path);

}  // namespace ballast
