// What the rules of LoRA share: matrices of modules, and of parameters that hold several experts.
#pragma once

#include "peft/merge/low_rank.hpp"

namespace ballast::peft {

// Throws Errc::mismatch unless the rank that the configuration has for `key`, a module or one of its parameters, is the
// number of rows that were found, `copies` of it one after the other.
void require_rank(const Task& task, std::string_view key, std::string_view part, std::uint64_t found,
                  std::uint64_t copies = 1);

std::string lora_step(const Task& task, std::uint64_t rank, double scaling);  // for people

// Merges A and B into the one of these parameters that they fit.
void merge_experts(const Task& task, const Tensor& a, const Tensor& b, const std::vector<std::string>& parameters);

}  // namespace ballast::peft
