// The table of all formats.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/format.hpp"

namespace ballast {

// In the order in which folders are looked through, and in which a file is asked what it is.
std::span<const FileFormat* const> all_formats();

// A zip of any kind. What its members make it, the formats that can be in a zip are asked.
extern const FileFormat kZipArchive;

// What the members of a zip make it: kZipArchive if no other format says that it is in it.
const FileFormat& format_in(const archive::Zip& zip);

// The format that the name of a file asks for; nothing if its ending is that of none.
const FileFormat* format_by_ending(std::string_view name);

// "safetensors, PyTorch, GGUF and NumPy": of those that are `wanted`, each name once.
std::string names_of_formats(bool (*wanted)(const FileFormat&), std::string_view last_word);

}  // namespace ballast
