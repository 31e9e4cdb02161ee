// Global: a name that a pickle would have imported. Ballast never does: it looks the name up in a table and moves on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ballast {

enum class Verdict : std::uint8_t {
  known,      // Ballast knows what it stands for and makes data of it
  unknown,    // it does not: kept as a record that can be shown and walked, harmless here
  dangerous,  // known to run code, read files or reach the network where somebody does import it
};
std::string_view name(Verdict verdict) noexcept;  // "known", "unknown", "dangerous"

// What a pickle may name. Nothing is ever imported or run, whatever is chosen here.
enum class Safety : std::uint8_t {
  inert,   // anything; what is unknown becomes an inert record
  strict,  // only what torch.load(weights_only=True) allows; anything else is Errc::unsafe
};

struct Global {
  std::string module, name;  // as the file spells them
  std::uint64_t offset = 0;  // of the opcode that names it, in its pickle's member, or in the file where there is none
  std::string member;        // "archive/data.pkl"; empty where the file itself is the pickle
  Verdict verdict = Verdict::unknown;
  std::string_view why;  // for a dangerous one: "runs shell commands"
};

}  // namespace ballast
