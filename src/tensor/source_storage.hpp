// A range of a byte source as a storage: the data section of a file, a stored member of an archive.
#pragma once

#include <cstdint>

#include <ballast/source.hpp>
#include <ballast/storage.hpp>

namespace ballast {

// The range must lie inside the source.
StoragePtr source_storage(SourcePtr source, std::uint64_t offset, std::uint64_t size_bytes);

}  // namespace ballast
