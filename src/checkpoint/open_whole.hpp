// Opens the whole checkpoint of any target, from the target's own files. open() looks for a conversion cache first: see
// cache/open.cpp.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Neither options.root nor options.cache matters here. A source is one file, and its name is the target.
Checkpoint open_whole(const std::string& target, const OpenOptions& options);
Checkpoint open_whole(const SourcePtr& source, const OpenOptions& options);

// Takes from the whole what the user gets: the subtree that options.root asks for, and what is known about its
// quantization. Configurations that tell this are looked for beside the target `beside`; if that is empty, nowhere.
Checkpoint take_asked_for(Checkpoint whole, const OpenOptions& options, const std::string& beside);

}  // namespace ballast
