#include "checkpoint/read_source.hpp"

#include <ballast/error.hpp>

#include "checkpoint/agreements/aliases.hpp"
#include "checkpoint/agreements/composites.hpp"
#include "checkpoint/agreements/compressed.hpp"
#include "checkpoint/agreements/ggml_blocks.hpp"
#include "checkpoint/agreements/values.hpp"
#include "checkpoint/archive.hpp"
#include "core/remedy.hpp"
#include "formats/all.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/zip_names.hpp"

namespace ballast {
namespace {

ReadContext context_of(const OpenOptions& options, std::uint64_t depth) {
  const auto read_file = [&options, depth](const SourcePtr& inside) { return read_source(inside, options, depth + 1); };
  const auto read_pickle = [&options, read_file](const SourcePtr& file, std::uint64_t first) {
    return torch::read_pickle(file, first, {options.limits, options.safety, read_file});
  };
  return {options, read_file, read_pickle};
}

Checkpoint read_zip(const SourcePtr& source, const ReadContext& context) {
  const archive::Zip zip = archive::read_zip(source, context.options.limits);
  if (const auto findings = torch::find_names_by_case(zip); !findings.empty()) {
    throw Error(Errc::malformed, findings.front().what)
        .in(source->name())
        .at_byte(findings.front().offset)
        .hint("two programs could read two different things in it; get it from where it came from again");
  }
  const FileFormat& format = format_in(zip);
  return format.read_zip != nullptr ? format.read_zip(zip, context) : read_archive(zip, format, context);
}

}  // namespace

Checkpoint unfold_agreements(Checkpoint checkpoint, const Limits& limits) {
  checkpoint = unfold_aliases(unfold_compressed(std::move(checkpoint), limits));
  return unfold_values(unfold_composites(unfold_ggml_blocks(std::move(checkpoint))));
}

Checkpoint read_source(const SourcePtr& source, const OpenOptions& options, std::uint64_t depth) {
  if (depth > options.limits.max_archive_depth) {
    throw Error(Errc::limit, "archives and checkpoints lie inside each other too deep")
        .in(source->name())
        .hint(raise_limit("max_archive_depth"));
  }
  return read_recognized(recognize(source, options.limits, options.checks_end), options, depth);
}

Checkpoint read_recognized(const Recognized& recognized, const OpenOptions& options, std::uint64_t depth) {
  const auto& [file, format] = recognized;
  const SourcePtr& source = file.source;
  if (recognized.is_json()) {
    throw Error(Errc::unsupported, "this is JSON: an index of shards at best, and not a checkpoint of its own")
        .in(source->name());
  }
  const ReadContext context = context_of(options, depth);
  Checkpoint checkpoint = format == &kZipArchive ? read_zip(source, context) : format->read(file, context);
  // Agreements name tensors as the file has them, and tensors of a file inside another file get other names.
  if (depth != 0) checkpoint = unfold_agreements(std::move(checkpoint), options.limits);
  if (depth == 0 && checkpoint.files.empty())
    checkpoint.files.push_back({source->name(), source->size_bytes(), source});
  return checkpoint;
}

Checkpoint read_set(const Recognized& recognized, const OpenOptions& options) {
  return recognized.format->read_set(recognized.file.source, context_of(options, 0));
}

}  // namespace ballast
