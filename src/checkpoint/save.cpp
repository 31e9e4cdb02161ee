#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>
#include <ballast/save.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "checkpoint/agreements/aliases.hpp"
#include "checkpoint/agreements/composites.hpp"
#include "checkpoint/agreements/compressed.hpp"
#include "checkpoint/agreements/ggml_blocks.hpp"
#include "checkpoint/agreements/values.hpp"
#include "checkpoint/earlier_set.hpp"
#include "checkpoint/left_out.hpp"
#include "checkpoint/quantization/packed_parts.hpp"
#include "checkpoint/quantization/without_packing.hpp"
#include "checkpoint/subfolders.hpp"
#include "core/remedy.hpp"
#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "formats/all.hpp"
#include "formats/npy/layout.hpp"
#include "io/posix.hpp"
#include "save/engine.hpp"
#include "save/plan.hpp"
#include "save/plan_key.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

void refuse_to_overwrite(const SavePlan& plan) {
  for (const SavePlan::File& file : plan.files) {
    if (io::is_name_taken(file.path))
      throw Error(Errc::invalid_argument, "already exists")
          .of_system(EEXIST)
          .in(file.path)
          .hint(mention(Remedy::overwrite) + " overwrites it");
  }
  if (io::is_name_taken(plan.rival))
    throw Error(Errc::invalid_argument, "is there already, and would be taken for what is written beside it")
        .of_system(EEXIST)
        .in(plan.rival)
        .hint("write into another folder; " + mention(Remedy::overwrite) + " removes it");
}

void remove_rival(const SavePlan& plan) {
  std::error_code error;
  if (io::is_name_taken(plan.rival) && !fs::remove(plan.rival, error) && error)
    throw Error(Errc::io, "cannot be removed: " + error.message()).in(plan.rival);
}

// In most cases the file was not understood, or another subtree of it was meant.
void refuse_empty(const Checkpoint& checkpoint) {
  if (checkpoint.size() != 0) return;
  const std::size_t values = checkpoint.values.size();
  throw Error(Errc::not_found, values == 0 ? std::string("there is no tensor to write")
                                           : fmt::format("there is no tensor to write, only {} plain {}", values,
                                                         values == 1 ? "value" : "values"))
      .about("")
      .in(checkpoint.target)
      .hint(mention(Remedy::info) + " shows what is in it; " + mention(Remedy::allow_empty) +
            " writes a file without tensors");
}

// Refuses parts whose data cannot be read, such as those of torchao in a pickle.
void refuse_unread_parts(const Checkpoint& checkpoint) {
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.has_data() || tensor.nbytes() == 0 || !packed.contain(tensor)) continue;
    throw Error(Errc::unsupported, "tensor " + quote(name) + " is quantized with " + checkpoint.quantization->scheme +
                                       ", and its values lie in attributes of a class, which are not read")
        .in(checkpoint.target)
        .hint("save it from Python as safetensors, or dequantized; or " + leave_it_out());
  }
}

// A folder stands for the file in it that Hugging Face's tools would look for.
std::string file_for(const std::string& path) {
  if (is_remote(path)) throw Error(Errc::unsupported, "nothing can be written to an address").in(path);
  std::error_code ignored;
  const bool names_folder = !path.empty() && path.back() == '/';
  return names_folder || fs::is_directory(path, ignored) ? (fs::path(path) / "model.safetensors").string() : path;
}

const FileFormat& format_for(const std::string& file) {
  const FileFormat* format = format_by_ending(file);
  if (format != nullptr && format->layouts != nullptr) return *format;
  std::string endings;
  for (const OutputFormat& output : output_formats())
    endings += fmt::format("{}{} for {}", endings.empty() ? "" : ", ", fmt::join(output.endings, ", "), output.name);
  throw Error(Errc::unsupported, "cannot tell from its ending in which format " + quote(file) + " should be written")
      .hint("the ending says it: " + endings +
            (fs::path(file).has_extension() ? "" : "; and " + quote(file + "/") + " is a folder of safetensors"));
}

// Applies the agreements by which the format keeps what it cannot hold otherwise.
Checkpoint as_the_format_has_it(Checkpoint checkpoint, const FileFormat& format, const SaveOptions& options) {
  // In safetensors the values are metadata, which a copy keeps.
  const bool is_copy = format.keeps.agreements && checkpoint.format == format.format;
  if (options.keep_values || is_copy) checkpoint = fold_values(std::move(checkpoint));
  if (options.compress && !format.keeps.agreements)
    throw Error(Errc::unsupported, "only the tensors of a safetensors file can be compressed")
        .hint("write a .safetensors file, or leave " + mention(Remedy::compress) + " out");
  if (format.keeps.typed_metadata) {
    checkpoint = without_packing(std::move(checkpoint));
    const PackedParts packed(checkpoint);
    for (const auto& [name, tensor] : checkpoint) packed.refuse(name, tensor, "written to a GGUF");
    return for_gguf(std::move(checkpoint));
  }
  if (!format.keeps.agreements) return checkpoint;
  if (options.dedupe) checkpoint = alias_same_tensors(std::move(checkpoint));
  checkpoint = options.raw_blocks ? fold_ggml_blocks(std::move(checkpoint)) : for_safetensors(std::move(checkpoint));
  // transformers refuses a file that names no framework. A copy of a safetensors file is not changed.
  if (!is_copy && options.name_framework) checkpoint.metadata.try_emplace("format", "pt");
  checkpoint = fold_composites(fold_aliases(std::move(checkpoint)));
  return options.compress ? fold_compressed(std::move(checkpoint), options) : checkpoint;
}

// Marks the items that are all the bytes of the tensor of that name: not compressed, and not a storage that holds more.
void find_tensors(SavePlan& plan, const Checkpoint& checkpoint) {
  for (SavePlan::File& file : plan.files) {
    for (SavePlan::Item& item : file.items) {
      const Tensor* tensor = checkpoint.find(item.name);
      if (tensor && tensor->dtype() != item.tensor.dtype()) item.dtype = tensor->dtype();
      item.is_tensor = tensor && tensor->storage() == item.tensor.storage() &&
                       tensor->offset() == item.tensor.offset() && tensor->nbytes() == item.tensor.nbytes() &&
                       tensor->is_contiguous() == item.tensor.is_contiguous() &&
                       (tensor->is_contiguous() || tensor->strides() == item.tensor.strides());
    }
  }
}

SaveReport write_files_of(const SavePlan& plan, const SaveOptions& options) {
  const auto create = [&](const std::string& path) {
    return io::create_file(
        path, {.overwrite = options.overwrite, .durable = options.durable, .key = plan.key, .whole_of = whole_of});
  };
  const auto join = [&](const std::string& path, const std::string& temporary) {
    return io::join_file(path, temporary, options.durable);
  };
  return write_files(plan, options, create, join);
}

// Writes the files in the place of whatever is there, which one member of a team looks after.
SaveReport write_new(const SavePlan& plan, const SaveOptions& options) {
  // Checks all files first, so that the tenth shard cannot stop a long job half-way.
  if (!options.overwrite) refuse_to_overwrite(plan);
  const EarlierSet earlier = options.overwrite ? find_earlier_set(plan, options.limits) : EarlierSet();
  Subfolders subfolders(plan);
  SaveReport report = write_files_of(plan, options);
  subfolders.keep();
  remove_rival(plan);
  remove(earlier, report.notes);
  return report;
}

}  // namespace

std::vector<OutputFormat> output_formats() {
  std::vector<OutputFormat> formats;
  for (const FileFormat* format : all_formats()) {
    if (format->layouts == nullptr) continue;
    formats.push_back({format->format, format->name, {}, format->keeps.typed_metadata});
    for (const Ending& ending : format->endings) formats.back().endings.push_back(ending.text);
  }
  return formats;
}

SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  if (!options.allow_empty) refuse_empty(checkpoint);
  if (checkpoint.quantization) refuse_unread_parts(checkpoint);
  const std::string file = file_for(path);
  const FileFormat& format = format_for(file);
  std::vector<Note> left_out = what_is_left_out(checkpoint, format, options);
  const Checkpoint shaped = as_the_format_has_it(checkpoint, format, options);
  SavePlan plan = plan_files(shaped, format, file, options);
  plan.notes.insert(plan.notes.begin(), left_out.begin(), left_out.end());
  for (std::size_t i = checkpoint.notes.size(); i < shaped.notes.size(); ++i) plan.notes.push_back(shaped.notes[i]);
  find_tensors(plan, checkpoint);
  const bool is_far = std::ranges::any_of(checkpoint.files, [](const CheckpointFile& file) {
    return file.source && file.source->bytes_per_round_trip() != 0;
  });
  if (plan.files.size() > 1 || is_far) plan.key = plan_key(plan, checkpoint.files);
  plan.is_far = is_far && !plan.key.empty();
  return plan;
}

SaveReport execute(const SavePlan& plan, const SaveOptions& options) {
  SaveReport report;
  together(team_of(options.team), [&] {
    report = team_of(options.team).is_first() ? write_new(plan, options) : write_files_of(plan, options);
  });
  return report;
}

SaveReport save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  return execute(plan_save(checkpoint, path, options), options);
}

SaveReport save_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options,
                    const std::string& name) {
  return execute(plan_tensor(tensor, npy::encode_header(tensor), path, options, name), options);
}

SaveReport save_raw(const Tensor& tensor, const std::string& path, const SaveOptions& options,
                    const std::string& name) {
  return execute(plan_tensor(tensor, {}, path, options, name), options);
}

}  // namespace ballast
