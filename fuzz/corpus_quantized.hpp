// The inputs that fuzzing quantized weights begins with: for each scheme some choices of parts.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace ballast::fuzz {

inline std::vector<std::string> quantized() {
  constexpr int kSchemes = 15, kInputs = 12, kBytes = 400;
  std::vector<std::string> inputs = {""};
  std::mt19937 random(1);
  for (int scheme = 0; scheme < kSchemes; ++scheme) {
    for (int i = 0; i < kInputs; ++i) {
      std::string input(1, static_cast<char>(scheme));
      for (int byte = 0; byte < kBytes; ++byte) input += static_cast<char>(random());
      inputs.push_back(input);
    }
  }
  return inputs;
}

}  // namespace ballast::fuzz
