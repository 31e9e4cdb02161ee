// load_state_dict: puts the tensors of a checkpoint into a C++ object, and checks all of them before anything changes.
//
// Only one thread at a time may fill a model; different models may be filled by different threads at once. The model
// owns its memory; a ballast::Tensor that becomes a view of the file keeps the file's storage alive.
//
// Example:
//   struct Linear { Tensor weight, bias; };
//   BALLAST_FIELDS(Linear, weight, bias)
//
//   Linear layer;
//   const LoadReport report = load_state_dict(layer, open("layer.safetensors"));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ballast/bind.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/device.hpp>
#include <ballast/error.hpp>
#include <ballast/overflows.hpp>
#include <ballast/progress.hpp>
#include <ballast/rank_plan.hpp>
#include <ballast/transform.hpp>
#include <ballast/weight_map.hpp>

namespace ballast {

// What happens if the checkpoint has another dtype than the model. The parts of a quantized weight
// (Checkpoint::quantization) are never cast: that is Errc::unsupported.
enum class DTypePolicy : std::uint8_t {
  keep,      // a ballast::Tensor takes the checkpoint's dtype; memory of another dtype is a mismatch
  to_model,  // cast to the dtype that the model's tensor has now
  to_one,    // cast all floating tensors to LoadStateDictOptions::dtype
};

struct LoadStateDictOptions {
  bool strict = true;  // if anything is missing, unexpected or mismatched, throws, and the model stays as it is
  bool ignore_mismatched_sizes = false;  // leave such tensors as they are, and list them
  bool assign = true;  // a ballast::Tensor becomes a view of the file; else a copy in memory of its own
  DTypePolicy dtype_policy = DTypePolicy::keep;
  DType dtype = DType::f32;               // for DTypePolicy::to_one
  std::optional<RankSlice> slice{};       // for a parallel model: only what one rank needs; see plan_ranks()
  std::string conversions{};              // transformers' own, before the map: "auto", or a type; see conversions.hpp
  WeightMap map{};                        // applied to the checkpoint's tensors: split, stacked, transposed, ...
  std::vector<RenameRule> key_mapping{};  // applied after the map, in order, to the names; see reversed()
  std::string strip_prefix{}, add_prefix{};
  // If names do not match as they are: without what wrappers put anywhere into names ("module.", "_orig_mod.",
  // "_fsdp_wrapped_module."), be it in some of them, and with or without one prefix for all ("model.", "state_dict.").
  bool find_prefix = true;
  std::vector<std::pair<std::string, std::string>> tied{};  // two names of one tensor: either in the file serves both
  std::vector<std::string> ignore_missing{}, ignore_unexpected{};  // globs over whole names
  Device device{};  // of every ballast::Tensor; the model's own memory stays where it is. meta: shapes, and no data
  std::vector<DeviceRule> map_location{};  // the first pattern that matches the model's name decides, before `device`
  LoadMode mode = LoadMode::mapped;        // for tensors on the cpu
  bool consume = false;  // release every tensor as soon as it is copied: its pages, and the tensor if it was moved in
  bool allow_dangerous = false;
  unsigned threads = 0;
  Progress progress{};
};

struct LoadReport {
  struct Mismatch {
    std::string name;
    DType file_dtype, model_dtype;
    Shape file_shape, model_shape;
  };
  struct Renamed {
    std::string from, to;
  };
  std::vector<std::string> missing;     // in the model, not in the checkpoint
  std::vector<std::string> unexpected;  // in the checkpoint, not in the model
  std::vector<Mismatch> mismatched;
  std::vector<Mismatch> left;          // tensors of other sizes that ignore_mismatched_sizes left as they were
  std::vector<Renamed> renamed;        // by key_mapping and prefixes
  std::vector<std::string> cast;       // to another dtype
  Overflows overflows;                 // of values that were cast and copied; a lazy view counts when it is read
  std::vector<std::string> tied;       // names that were filled from their other name
  std::vector<std::string> differing;  // tied names of which the checkpoint has both, with different values
  std::vector<Note> notes;             // about prefixes that were found, and conversions
  std::vector<std::pair<std::string, std::string>> suggestions;  // missing -> the unexpected name that it may be
  std::uint64_t loaded = 0;                                      // number of tensors
  std::uint64_t bytes = 0;                                       // that were copied; assigned tensors are not read
  double seconds = 0;

  bool ok() const noexcept { return missing.empty() && unexpected.empty() && mismatched.empty() && differing.empty(); }
};
std::string to_string(const LoadReport& report);  // a short table

// The Errc::mismatch of a strict load, with everything that is wrong.
class StateDictError : public Error {
 public:
  explicit StateDictError(LoadReport report);
  const LoadReport& report() const noexcept { return report_; }

 private:
  LoadReport report_;
};

LoadReport load_bound(std::vector<BoundTensor> model, Checkpoint checkpoint, const LoadStateDictOptions& options = {});

// Throws StateDictError if `strict` is set and something does not fit, before the model has changed.
template <class Model>
LoadReport load_state_dict(Model& model, Checkpoint checkpoint, const LoadStateDictOptions& options = {}) {
  return load_bound(bind(model), std::move(checkpoint), options);
}

}  // namespace ballast
