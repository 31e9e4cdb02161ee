#include "formats/safetensors/format.hpp"

#include <array>

#include "formats/safetensors/edit.hpp"
#include "formats/safetensors/layout.hpp"
#include "formats/safetensors/reader.hpp"

namespace ballast::safetensors {
namespace {

constexpr std::array kEndings = {Ending{".safetensors", "model.safetensors"}};

Checkpoint read_file(const FileToRead& file, const ReadContext& context) {
  return read(file.source, {context.options.limits, context.options.lenient});
}

}  // namespace

constinit const FileFormat kFormat = {
    .name = "safetensors",
    .bytes = "a safetensors file",
    .begins = looks_like_safetensors,
    .was = looks_like_damaged_safetensors,
    .read = read_file,
    .endings = kEndings,
    .format = Format::safetensors,
    .written = "a safetensors file",
    .layouts = layouts,
    .keeps = {.metadata = true, .agreements = true},
    .edit = edit,
};

}  // namespace ballast::safetensors
