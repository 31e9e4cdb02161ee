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

// Which tensors are the model: (root "model", prefix "module." removed).
std::string place_of_model(const TrainingParts& parts) {
  std::string place;
  if (!parts.model.root.empty()) place = fmt::format("root \"{}\"", parts.model.root);
  if (!parts.prefix.empty()) place += fmt::format("{}prefix \"{}\" removed", place.empty() ? "" : ", ", parts.prefix);
  return place.empty() ? place : " (" + place + ")";
}

}  // namespace

std::optional<std::string> training_note(const std::string& target, const TrainingParts& parts) {
  const Total optimizer = total_of(parts.optimizers), averages = total_of(parts.averages),
              others = total_of(parts.others);
  if (parts.model.tensors == 0 && optimizer.tensors != 0)
    return "this is the state of an optimizer; there is no model in it";
  if (optimizer.tensors == 0 && averages.tensors == 0) return std::nullopt;
  const std::uint64_t all = parts.model.bytes + optimizer.bytes + averages.bytes + others.bytes;
  std::string text = "this is a training checkpoint";
  if (optimizer.tensors != 0)
    text += fmt::format(": {} of {} are optimizer state", format_bytes(optimizer.bytes), format_bytes(all));
  text += fmt::format("; ballast convert {} OUT --model-only gives just the model{}", shell_word(target),
                      place_of_model(parts));
  if (!parts.averages.empty())
    text += fmt::format("; \"{}\" is an average of it (--root {})", parts.averages.front().root,
                        shell_word(parts.averages.front().root));
  if (parts.is_average) text += "; it is an average, since no other weights are there";
  if (!parts.tied.empty())
    text += fmt::format("; {} tied to others (--dedupe writes their bytes once)",
                        parts.tied.size() == 1 ? fmt::format("\"{}\" is", parts.tied.front())
                                               : fmt::format("{} are", plural(parts.tied.size(), "name")));
  return text;
}

}  // namespace ballast::cli
