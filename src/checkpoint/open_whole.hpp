// Any target to the whole of its checkpoint, read from its own files. open() looks for a conversion cache first: see
// cache/open.cpp.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Neither options.root nor options.cache changes anything here. A source is one file, and its name is the target.
Checkpoint open_whole(const std::string& target, const OpenOptions& options);
Checkpoint open_whole(const SourcePtr& source, const OpenOptions& options);

// What the user gets of the whole: the subtree that options.root asks for, with a word on whether its weights are what
// they seem. Configurations that tell are looked for beside the target `beside`; if that is empty, nowhere.
Checkpoint take_asked_for(Checkpoint whole, const OpenOptions& options, const std::string& beside);

}  // namespace ballast
