// The packed bytes of a member of a zip that lies far away: the local header is read and checked with the bytes.
#pragma once

#include <string>

#include <ballast/source.hpp>

#include "formats/archive/zip.hpp"

namespace ballast::archive {

// `name` is the name of the source, "FILE!/MEMBER". The first read may throw what a strict reading of the header
// throws. A member that arrives in the time of one request is read whole, with its header, by the first read of it.
SourcePtr late_member(SourcePtr zip, ZipMember member, std::string name);

}  // namespace ballast::archive
