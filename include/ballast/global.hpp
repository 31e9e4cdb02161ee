// Global: a name that a pickle would have imported. Ballast never imports it: it looks the name up in a table and goes
// on.
//
// These are plain values. Several threads may read one while nobody changes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ballast {

enum class Verdict : std::uint8_t {
  known,      // Ballast knows what the name stands for and makes data from it
  unknown,    // Ballast does not know it: kept as a record that can be shown and walked, harmless here
  dangerous,  // known to run code, read files or reach the network if somebody imports it
};
std::string_view name(Verdict verdict) noexcept;  // "known", "unknown", "dangerous"

// What a pickle may name. Nothing is ever imported or run, whatever is chosen here.
enum class Safety : std::uint8_t {
  inert,   // anything; what Ballast does not know is kept as data, which can be shown and is never run
  strict,  // only what torch.load(weights_only=True) allows; anything else is Errc::unsafe
};

struct Global {
  std::string module, name;  // as the file spells them
  std::uint64_t offset = 0;  // of the opcode that names it, in the member, or in the file if there is no member
  std::string member;        // "archive/data.pkl"; empty if the file itself is the pickle
  Verdict verdict = Verdict::unknown;
  std::string_view why;  // if it is dangerous: "runs shell commands"; lives as long as the program
};

}  // namespace ballast
