#include "checkpoint/read_source.hpp"

#include <ballast/error.hpp>

#include "checkpoint/aliases.hpp"
#include "checkpoint/archive.hpp"
#include "checkpoint/composites.hpp"
#include "checkpoint/compressed.hpp"
#include "checkpoint/detect.hpp"
#include "checkpoint/ggml_blocks.hpp"
#include "checkpoint/values.hpp"
#include "formats/gguf/reader.hpp"
#include "formats/npy/reader.hpp"
#include "formats/safetensors/reader.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/zip_names.hpp"

namespace ballast {
namespace {

torch::ReadOptions torch_options(const OpenOptions& options, std::uint64_t depth) {
  const auto nested = [&options, depth](const io::ByteSourcePtr& inner) {
    return read_source(inner, options, depth + 1);
  };
  return {options.limits, options.safety, nested};
}

Checkpoint read_zip(const io::ByteSourcePtr& source, const OpenOptions& options, std::uint64_t depth) {
  const archive::Zip zip = archive::read_zip(source, options.limits);
  if (const auto findings = torch::find_names_by_case(zip); !findings.empty()) {
    throw Error(Errc::malformed, findings.front().what)
        .in(source->name())
        .at_byte(findings.front().offset)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  if (torch::is_torch_zip(zip)) return torch::read_zip(zip, torch_options(options, depth));
  return read_archive(zip, options, depth);
}

// An array of numbers is a tensor without a name; an array of objects is a pickle after a header.
Checkpoint read_npy(const io::ByteSourcePtr& source, const OpenOptions& options, std::uint64_t depth) {
  const npy::Header header = npy::read_header(*source, options.limits);
  Checkpoint checkpoint;
  if (header.type.is_object())
    checkpoint = torch::read_pickle(source, header.data_offset, torch_options(options, depth));
  else
    checkpoint.tensors.insert("", npy::read_tensor(source, header));
  checkpoint.format = Format::npy;
  return checkpoint;
}

Checkpoint read(const io::ByteSourcePtr& source, const OpenOptions& options, std::uint64_t depth) {
  switch (detect(*source)) {
    case Content::safetensors: return safetensors::read(source, {options.limits, options.lenient});
    case Content::zip: return read_zip(source, options, depth);
    case Content::tar: return torch::read_tar(source, torch_options(options, depth));
    case Content::pickle: return torch::read_stream(source, torch_options(options, depth));
    case Content::npy: return read_npy(source, options, depth);
    case Content::gguf: return from_gguf(gguf::read(source, gguf_options(options)));
    case Content::json: break;
  }
  throw Error(Errc::unsupported, "this is JSON: an index of shards at best, and not a checkpoint of its own")
      .in(source->name());
}

}  // namespace

// Tensors that share bytes are read, with a note: there are real files like that, and no reader sees anything else in
// them.
gguf::ReadOptions gguf_options(const OpenOptions& options) {
  const auto order = options.little_endian_blocks ? gguf::BlockOrder::as_is : gguf::BlockOrder::swapped;
  return {.limits = options.limits, .block_order = order, .lenient = true};
}

Checkpoint from_gguf(gguf::GgufFile file) {
  Checkpoint checkpoint = std::move(file.checkpoint);
  checkpoint.fields = std::move(file.fields);
  checkpoint.unknown_ggml = std::move(file.unknown_types);
  return checkpoint;
}

Checkpoint unfold_agreements(Checkpoint checkpoint, const Limits& limits) {
  checkpoint = unfold_aliases(unfold_compressed(std::move(checkpoint), limits));
  return unfold_values(unfold_composites(unfold_ggml_blocks(std::move(checkpoint))));
}

Checkpoint read_source(const io::ByteSourcePtr& source, const OpenOptions& options, std::uint64_t depth) {
  if (depth > options.limits.max_archive_depth) {
    throw Error(Errc::limit, "archives and checkpoints lie inside each other too deep").in(source->name());
  }
  Checkpoint checkpoint = read(source, options, depth);
  // Agreements name tensors as the file has them, and those inside of another file get other names.
  if (depth != 0) checkpoint = unfold_agreements(std::move(checkpoint), options.limits);
  if (depth == 0 && checkpoint.files.empty()) checkpoint.files.push_back({source->name(), source->size_bytes()});
  return checkpoint;
}

}  // namespace ballast
