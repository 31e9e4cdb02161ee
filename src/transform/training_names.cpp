#include "transform/training_names.hpp"

#include <algorithm>
#include <array>

#include "core/text.hpp"
#include "transform/wrappers.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;

constexpr std::array kUsualModels = {"model_state_dict"sv, "state_dict"sv, "model"sv,       "module"sv,
                                     "model_state"sv,      "net"sv,        "network"sv,     "params"sv,
                                     "model_weights"sv,    "weights"sv,    "model_params"sv};

constexpr std::array kAverages = {"ema"sv,
                                  "state_dict_ema"sv,
                                  "ema_state_dict"sv,
                                  "model_ema"sv,
                                  "ema_model"sv,
                                  "params_ema"sv,
                                  "ema_params"sv,
                                  "ema_weights"sv,
                                  "net_ema"sv,
                                  "ema_state"sv,
                                  "averaged_model"sv,
                                  "swa_state_dict"sv,
                                  "model_ema_state_dict"sv};

constexpr std::array kOfTrainers = {"scheduler"sv,
                                    "lr_scheduler"sv,
                                    "lr_schedulers"sv,
                                    "scheduler_state_dict"sv,
                                    "scaler"sv,
                                    "grad_scaler"sv,
                                    "amp_scaler"sv,
                                    "scaler_state_dict"sv,
                                    "amp"sv,
                                    "callbacks"sv,
                                    "loops"sv,
                                    "rng_state"sv,
                                    "rng_states"sv,
                                    "rng"sv,
                                    "cuda_rng_state"sv,
                                    "torch_rng_state"sv,
                                    "cpu_rng_state"sv,
                                    "random_state"sv,
                                    "extra_state"sv,
                                    "hyper_parameters"sv,
                                    "hparams"sv,
                                    "args"sv,
                                    "cfg"sv,
                                    "config"sv,
                                    "criterion"sv,
                                    "normalizer"sv,
                                    "epoch"sv,
                                    "step"sv,
                                    "global_step"sv,
                                    "iteration"sv,
                                    "loss"sv,
                                    "losses"sv,
                                    "best_score"sv,
                                    "best_acc1"sv,
                                    "param_groups"sv};

constexpr std::array kOptimizerSigns = {"state"sv,
                                        "param_groups"sv,
                                        "exp_avg"sv,
                                        "exp_avg_sq"sv,
                                        "momentum_buffer"sv,
                                        "square_avg"sv,
                                        "base_optimizer_state"sv,
                                        "optimizer_state_dict"sv,
                                        "fp32_groups"sv,
                                        "fp32_flat_groups"sv,
                                        "single_partition_of_fp32_groups"sv,
                                        "fp32_from_fp16_params"sv,
                                        "param_state"sv};

// Names of Hugging Face begin so, without any wrapper.
constexpr std::array kHuggingFace = {"model.layers."sv,         "model.embed_tokens."sv,   "model.shared."sv,
                                     "model.decoder.layers."sv, "model.encoder.layers."sv, "model.language_model."sv,
                                     "model.visual."sv,         "model.vision_tower."sv};

bool is_among(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool all_begin_with(const Checkpoint& model, std::size_t skipped, std::string_view prefix) {
  return model.size() != 0 && std::ranges::all_of(model, [&](const StateDict::Entry& entry) {
           // A name that is nothing but wrappers would become empty.
           return entry.name.size() > skipped + prefix.size() && entry.name.substr(skipped).starts_with(prefix);
         });
}

bool looks_like_huggingface(const Checkpoint& model, std::size_t skipped) {
  return std::ranges::any_of(model, [&](const StateDict::Entry& entry) {
    const std::string_view name = entry.name.substr(skipped);
    return std::ranges::any_of(kHuggingFace, [&](std::string_view begin) { return name.starts_with(begin); });
  });
}

}  // namespace

std::span<const std::string_view> usual_models() { return kUsualModels; }

bool is_called_optimizer(std::string_view word) {
  if (word.find_first_of("oO") == word.npos) return false;
  const std::string lower = lower_case(word);
  return lower.find("optim") != std::string::npos || lower == "opt" || lower.starts_with("opt_");
}

bool is_called_average(std::string_view word) { return is_among(kAverages, word); }

bool is_called_by_trainers(std::string_view word) { return is_among(kOfTrainers, word); }

bool has_optimizer_sign(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the dot
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (is_among(kOptimizerSigns, path.substr(0, dot))) return true;
    path.remove_prefix(dot);
  }
  return false;
}

std::string wrapper_before(const Checkpoint& model, bool is_lightning) {
  std::string prefix;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : wrappers_before_names()) {
      if (!all_begin_with(model, prefix.size(), wrapper)) continue;
      prefix += wrapper;
      found = true;
    }
  }
  const bool is_wrapped = is_lightning && all_begin_with(model, prefix.size(), "model.");
  if (!is_wrapped || looks_like_huggingface(model, prefix.size())) return prefix;
  return prefix + "model.";
}

}  // namespace ballast
