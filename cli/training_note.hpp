// A sentence about a checkpoint that training programs wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ballast/training.hpp>

namespace ballast::cli {

struct Terminal;

// The lines of info: what is not the model, and how to get just the model. Empty if it is no training checkpoint, or if
// there is nothing to leave out.
std::vector<std::string> training_lines(const Terminal& terminal, const TrainingParts& parts);

// The same in one sentence, with the whole command; nothing if there are no such lines.
std::optional<std::string> training_note(const std::string& target, const TrainingParts& parts);

}  // namespace ballast::cli
