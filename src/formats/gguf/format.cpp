#include "formats/gguf/format.hpp"

#include <array>
#include <utility>

#include "formats/gguf/edit.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/layout.hpp"
#include "formats/gguf/reader.hpp"
#include "formats/gguf/split.hpp"

namespace ballast::gguf {
namespace {

constexpr std::array kEndings = {Ending{".gguf", "model.gguf"}};

// Tensors that share bytes are read, with a note: there are real files like that, and all readers agree about them.
ReadOptions read_options(const OpenOptions& options) {
  const auto order = options.little_endian_blocks ? BlockOrder::as_is : BlockOrder::swapped;
  return {.limits = options.limits, .block_order = order, .lenient = true};
}

Checkpoint as_checkpoint(GgufFile file) {
  Checkpoint checkpoint = std::move(file.checkpoint);
  checkpoint.typed_metadata = std::move(file.fields);
  checkpoint.unknown_ggml = std::move(file.unknown_types);
  return checkpoint;
}

Checkpoint read_file(const FileToRead& file, const ReadContext& context) {
  return as_checkpoint(read(file.source, read_options(context.options)));
}

// Any part opens the whole set.
Checkpoint read_whole_set(const SourcePtr& file, const ReadContext& context) {
  return as_checkpoint(read_set(file, *context.options.files, read_options(context.options)));
}

}  // namespace

constinit const FileFormat kFormat = {
    .name = "GGUF",
    .bytes = "a GGUF file",
    .begins = looks_like_gguf,
    .read = read_file,
    .read_set = read_whole_set,
    .set_of = set_of,
    .endings = kEndings,
    .format = Format::gguf,
    .written = "a GGUF file",
    .layouts = layouts,
    .sharding = Sharding::by_names,
    .keeps = {.metadata = true, .typed_metadata = true},
    .edit = edit,
};

}  // namespace ballast::gguf
