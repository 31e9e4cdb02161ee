// save: any list of tensors to a file, streamed in bounded memory, in parallel, whole or not at all.
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

// Values of a tensor that the dtype in which it was written does not reach.
struct TensorOverflows {
  std::string name;
  DType dtype;  // that it was written in
  Overflows overflows;
};

// A note for each dtype: how many values of which tensors it does not reach, and the largest. Where `strict`, throws
// Errc::mismatch instead. Tensors without any say nothing.
std::vector<Note> overflow_notes(std::span<const TensorOverflows> overflows, bool strict);

struct SaveReport {
  std::vector<CheckpointFile> files;
  std::uint64_t files_kept = 0;            // that a run which was killed had finished
  std::vector<TensorDigest> digests;       // of what was written as one piece, where SaveOptions asks for them
  std::vector<TensorOverflows> overflows;  // in the order of the files; the notes say the same in short
  std::vector<Note> notes;                 // what was lost, and what was wrong with the source and did not stop the job
  std::uint64_t data_bytes = 0;
  double seconds = 0;
};

// A format that files can be written in.
struct OutputFormat {
  Format format;                          // of what was written
  std::string_view name;                  // "safetensors"
  std::vector<std::string_view> endings;  // ".safetensors"
  bool has_typed_metadata = false;        // Checkpoint::fields; else texts at most
};
std::vector<OutputFormat> output_formats();

// The format follows from the ending of `path`: see output_formats(). A folder gets "model.safetensors" in it. A
// checkpoint that names something dangerous is Errc::unsafe.
SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});
SaveReport execute(const SavePlan& plan, const SaveOptions& options = {});
SaveReport save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

// One tensor, called `name` in what is said about it, as a NumPy file, or as its contiguous little-endian bytes.
SaveReport save_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options = {},
                    const std::string& name = {});
SaveReport save_raw(const Tensor& tensor, const std::string& path, const SaveOptions& options = {},
                    const std::string& name = {});

}  // namespace ballast
