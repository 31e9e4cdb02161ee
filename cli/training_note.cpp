#include "training_note.hpp"

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "session.hpp"

namespace ballast::cli {
namespace {

struct Total {
  std::uint64_t tensors = 0, bytes = 0;
};

Total total_of(const std::vector<TrainingPart>& parts) {
  Total total;
  for (const TrainingPart& part : parts) {
    total.tensors += part.tensors;
    total.bytes += part.bytes;
  }
  return total;
}

// A word as it can be pasted into a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Which tensors are the model: (what is under "model", without the prefix "module.").
std::string place_of_model(const TrainingParts& parts) {
  std::string place;
  if (!parts.model.root.empty()) place = fmt::format("what is under \"{}\"", parts.model.root);
  if (!parts.prefix.empty())
    place += fmt::format("{}without the prefix \"{}\"", place.empty() ? "" : ", ", parts.prefix);
  return place.empty() ? place : " (" + place + ")";
}

// `command` gives just the model.
std::vector<std::string> lines_with(const Terminal& terminal, const std::string& command, const TrainingParts& parts) {
  const Total optimizer = total_of(parts.optimizers), averages = total_of(parts.averages),
              others = total_of(parts.others);
  if (parts.model.tensors == 0 && optimizer.tensors != 0)
    return {"this is the state of an optimizer; there is no model in it"};
  if (optimizer.tensors == 0 && averages.tensors == 0) return {};
  std::vector<std::string> lines;
  const std::uint64_t all = parts.model.bytes + optimizer.bytes + averages.bytes + others.bytes;
  if (optimizer.tensors != 0)
    lines.push_back(fmt::format("{} of {} are optimizer state", terminal.bytes_in_words(optimizer.bytes),
                                terminal.bytes_in_words(all)));
  lines.push_back(fmt::format("{} gives just the model{}", command, place_of_model(parts)));
  if (!parts.averages.empty()) {
    const std::string& root = parts.averages.front().root;
    lines.push_back(fmt::format("\"{}\" is an average of it (--root {})", root, shell_word(root)));
  }
  if (parts.is_average) lines.emplace_back("it is an average, since no other weights are there");
  if (!parts.tied.empty())
    lines.push_back(fmt::format("{} tied to others (--dedupe writes their bytes once)",
                                parts.tied.size() == 1 ? fmt::format("\"{}\" is", parts.tied.front())
                                                       : fmt::format("{} are", plural(parts.tied.size(), "name"))));
  return lines;
}

}  // namespace

std::vector<std::string> training_lines(const Terminal& terminal, const TrainingParts& parts) {
  return lines_with(terminal, "convert --model-only", parts);
}

std::optional<std::string> training_note(const std::string& target, const TrainingParts& parts) {
  const Terminal of_people{.interactive = true};
  const auto lines =
      lines_with(of_people, fmt::format("ballast convert {} OUT --model-only", shell_word(target)), parts);
  if (lines.empty()) return std::nullopt;
  if (parts.model.tensors == 0) return lines.front();
  return fmt::format("this is a training checkpoint: {}", fmt::join(lines, "; "));
}

}  // namespace ballast::cli
