// Files to measure with: headers like those of real models, over data that take no space on the disk.
#pragma once

#include <cstdint>
#include <string>

namespace ballast::bench {

// A folder that is removed when the program ends.
const std::string& scratch();

// A safetensors file with tensors number [first, first + count) of an endless transformer; the data are a hole in the
// file. Returns the size of the header.
std::uint64_t write_model(const std::string& path, std::size_t first, std::size_t count,
                          std::uint64_t tensor_bytes = 8192);

std::string model_tensor_name(std::size_t number);

// Opens the file, visits every name and size, and frees everything again.
void open_and_list(const std::string& path);

// Reads the whole file into fresh memory, and frees the memory.
void malloc_and_read(const std::string& path);

// Reads the file from the page cache, each thread a part of it, into memory that stays in the cache of the processor.
void read_once(const std::string& path, unsigned threads);

// A file full of bytes that do not compress.
void write_random(const std::string& path, std::uint64_t header_tensor_bytes);

// Copies as cp does, but without copy_file_range, which does not copy on some file systems.
void copy_file(const std::string& from, const std::string& to, bool sync);

}  // namespace ballast::bench
