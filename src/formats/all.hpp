// The table of all formats.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/format.hpp"

namespace ballast {

// The order is that in which folders are searched, and in which each format is asked whether a file is its own.
std::span<const FileFormat* const> all_formats();

// A zip of any kind. Formats that can be in a zip are asked what its members make it.
extern const FileFormat kZipArchive;

// The format that the members of a zip make it: kZipArchive if no other format says that it is in the zip.
const FileFormat& format_in(const archive::Zip& zip);

// The format that the name of a file asks for; nothing if no format has its ending.
const FileFormat* format_by_ending(std::string_view name);

// The names of the formats that are `wanted`, each name once: "safetensors, PyTorch, GGUF and NumPy".
std::string names_of_formats(bool (*wanted)(const FileFormat&), std::string_view last_word);

}  // namespace ballast
