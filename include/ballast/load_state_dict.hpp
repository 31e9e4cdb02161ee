// load_state_dict: the tensors of a checkpoint into a C++ object, checked before anything changes.
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
  keep,      // a ballast::Tensor takes the checkpoint's; memory of another dtype is a mismatch
  to_model,  // cast to what the model's tensor has now
  to_one,    // cast all floating tensors to LoadStateDictOptions::dtype
};

struct LoadStateDictOptions {
  bool strict = true;  // anything missing, unexpected or mismatched throws, and the model stays as it is
  bool ignore_mismatched_sizes = false;  // leave such tensors as they are, and say so
  bool assign = true;  // a ballast::Tensor becomes a view of the file; else a copy in memory of its own
  DTypePolicy dtype_policy = DTypePolicy::keep;
  DType dtype = DType::f32;               // for DTypePolicy::to_one
  std::optional<RankSlice> slice{};       // of a parallel model: only what one rank needs; see plan_ranks()
  WeightMap map{};                        // applied to the checkpoint's tensors: split, stacked, transposed, ...
  std::vector<RenameRule> key_mapping{};  // applied then, in order, to the names; see reversed()
  std::string strip_prefix{}, add_prefix{};
  bool find_prefix = true;  // try "module.", "_orig_mod.", "model." and the like where names do not match as they are
  std::vector<std::pair<std::string, std::string>> tied{};  // names of one tensor: either in the file serves both
  std::vector<std::string> ignore_missing{}, ignore_unexpected{};  // globs over whole names
  Device device{};  // of every ballast::Tensor; memory of the model's own stays where it is. meta: shapes, and no data
  std::vector<DeviceRule> map_location{};  // the first pattern that matches the model's name decides, before `device`
  LoadMode mode = LoadMode::mapped;        // of what goes to the cpu
  bool consume = false;  // let go of every tensor as soon as it is copied: its pages, and itself if it was moved in
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
  std::vector<Mismatch> left;          // of other sizes, and as they were, because ignore_mismatched_sizes says so
  std::vector<Renamed> renamed;        // by key_mapping and prefixes
  std::vector<std::string> cast;       // to another dtype
  Overflows overflows;                 // of what was cast and copied; a lazy view casts, and counts, when it is read
  std::vector<std::string> tied;       // served by their other name
  std::vector<std::string> differing;  // tied names that the checkpoint has both, with other values
  std::vector<std::pair<std::string, std::string>> suggestions;  // missing -> the unexpected name that it may be
  std::uint64_t loaded = 0;                                      // tensors
  std::uint64_t bytes = 0;                                       // copied; what is assigned is not read
  double seconds = 0;

  bool ok() const noexcept { return missing.empty() && unexpected.empty() && mismatched.empty() && differing.empty(); }
};
std::string to_string(const LoadReport& report);  // a short table

// The Errc::mismatch of a strict load, with all that is wrong.
class StateDictError : public Error {
 public:
  explicit StateDictError(LoadReport report);
  const LoadReport& report() const noexcept { return report_; }

 private:
  LoadReport report_;
};

LoadReport load_bound(std::vector<BoundTensor> model, Checkpoint checkpoint, const LoadStateDictOptions& options = {});

// Throws StateDictError where `strict` and something does not fit, before the model has changed.
template <class Model>
LoadReport load_state_dict(Model& model, Checkpoint checkpoint, const LoadStateDictOptions& options = {}) {
  return load_bound(bind(model), std::move(checkpoint), options);
}

}  // namespace ballast
