// A sentence about a checkpoint that training programs wrote.
#pragma once

#include <optional>
#include <string>

#include <ballast/training.hpp>

namespace ballast::cli {

// How much of the checkpoint is not the model, and the command that gives just the model; nothing if it is no training
// checkpoint, or if there is nothing to leave out.
std::optional<std::string> training_note(const std::string& target, const TrainingParts& parts);

}  // namespace ballast::cli
