// save: writes any list of tensors to a file, streamed in bounded memory and in parallel; the file appears whole or not
// at all.
//
// The functions may be called from several threads at once, also for the same checkpoint. Plans and reports are values;
// a plan keeps the storages of its tensors alive.
//
// Example:
//   const Checkpoint half = cast(open("model.pt"), DType::bf16);
//   save(half, "model.safetensors", {.max_shard_bytes = 5'000'000'000, .overwrite = true});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/overflows.hpp>
#include <ballast/save_plan.hpp>

namespace ballast {

// The digest of a tensor's contiguous little-endian bytes: see manifest.hpp.
struct TensorDigest {
  std::string name;
  std::uint64_t digest;
};

// How many values of a tensor did not fit a dtype that they were rounded to.
struct TensorOverflows {
  std::string name;
  DType dtype;  // the dtype that they did not fit: that of the tensor, or of values on the way to it
  Overflows overflows;
};

// A note for each dtype: how many values of which tensors do not fit it, and the largest. If `strict`, throws
// Errc::mismatch instead. Tensors without overflows give no note.
std::vector<Note> overflow_notes(std::span<const TensorOverflows> overflows, bool strict);

// A note for each file that has wrong checksums for the bytes of these tensors, or for bytes that they are made from.
// If `options` say strict, throws Errc::mismatch instead. Reads all that has a checksum, and nothing else; a save does
// this by itself.
std::vector<Note> checksum_notes(const StateDict& tensors, const SaveOptions& options = {});

struct SaveReport {
  std::vector<CheckpointFile> files;
  std::uint64_t files_kept = 0;            // files that an earlier run had finished before it was killed
  std::vector<TensorDigest> digests;       // of tensors that were written as one range, if SaveOptions asks for digests
  std::vector<TensorOverflows> overflows;  // in the order of the files; the notes say the same in short
  std::vector<Note> notes;                 // what was lost, and faults of the source that did not stop the job
  std::uint64_t data_bytes = 0;
  double seconds = 0;
};

// A format that files can be written in.
struct OutputFormat {
  Format format;                          // Checkpoint::format of the files that are written
  std::string_view name;                  // "safetensors"
  std::vector<std::string_view> endings;  // ".safetensors"
  bool has_typed_metadata = false;        // whether it holds Checkpoint::typed_metadata; else texts at most
};
std::vector<OutputFormat> output_formats();

// The format follows from the extension of `path`: see output_formats(). If `path` is a folder, the file is
// "model.safetensors" in it. A checkpoint that names something dangerous is Errc::unsafe.
SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});
SaveReport execute(const SavePlan& plan, const SaveOptions& options = {});
SaveReport save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

// Writes one tensor as a NumPy file, or as its contiguous little-endian bytes. Messages call the tensor `name`.
SaveReport save_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options = {},
                    const std::string& name = {});
SaveReport save_raw(const Tensor& tensor, const std::string& path, const SaveOptions& options = {},
                    const std::string& name = {});

}  // namespace ballast
