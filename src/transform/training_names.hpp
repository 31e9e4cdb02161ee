// The names that training programs give to the parts of their checkpoints, and what wrappers put before them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

std::span<const std::string_view> usual_models();  // the likeliest first

bool is_called_optimizer(std::string_view word);    // "optimizer", "optimizer_states", "generator_optimizer", "opt_g"
bool is_called_average(std::string_view word);      // "ema", "state_dict_ema"
bool is_called_by_trainers(std::string_view word);  // "lr_schedulers", "callbacks": neither a model nor an optimizer

// Whether a path below a word has a part that only optimizers have: "state", "param_groups", "exp_avg".
bool has_optimizer_sign(std::string_view path);

// What stands before every name and was put there by wrappers: "module.", "module._orig_mod."; with Lightning also
// "model.", unless the names look like those of Hugging Face.
std::string wrapper_before(const Checkpoint& model, bool is_lightning);

}  // namespace ballast
