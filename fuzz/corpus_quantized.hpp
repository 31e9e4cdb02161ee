// The inputs that fuzzing quantized weights begins with: for each reader a weight that fits together, written as
// quantized_fuzz.cpp reads its input, and some random choices of parts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/dtype.hpp>

namespace ballast::fuzz {

class QuantizedInput {
 public:
  QuantizedInput(int scheme, int config, int bits = 4, int text = 0) {
    for (const int byte : {scheme, config, bits, text}) put(byte);
  }

  // Random bytes, unless they are given. A dtype is only needed if it is not the one that the part has first of all.
  QuantizedInput& part(std::initializer_list<int> shape, int width, std::optional<DType> dtype = {},
                       std::string_view bytes = {}) {
    put(static_cast<int>(shape.size()) << 3 | (dtype ? 6 : 0));
    for (std::size_t i = 0; dtype && i < all_dtypes().size(); ++i)
      if (all_dtypes()[i].dtype == *dtype) put(static_cast<int>(i));
    int count = width;
    for (const int size : shape) {
      put(size < 0x80 ? size : 0x87);  // 128 is the only other size
      count *= size;
    }
    text_ += bytes;
    if (!bytes.empty()) return *this;
    for (int i = 0; i < count; ++i) put(static_cast<int>(random_() % 0x78));
    return *this;
  }
  QuantizedInput& number(char value) { return part({}, 4, {}, std::string({value, 0, 0, 0})); }
  QuantizedInput& sizes(char rows, char columns) { return part({2}, 0, {}, std::string({rows, columns})); }
  QuantizedInput& text(int which) {
    put(0xF0);
    put(which);
    return *this;
  }
  QuantizedInput& missing() {
    put(7);
    return *this;
  }

  operator std::string() const { return text_ + std::string(8, '\1'); }

 private:
  void put(int byte) { text_ += static_cast<char>(byte); }

  std::string text_;
  std::mt19937 random_{1};
};

inline std::vector<std::string> honest_quantized() {
  using Input = QuantizedInput;
  using enum DType;
  const std::string groups(128, '\0');
  return {
      Input(0, 0).part({4, 32}, 4).part({1, 4}, 4).part({1, 32}, 2).missing(),                            // GPTQ
      Input(0, 0, 3).part({3, 32}, 4).part({1, 3}, 4).part({1, 32}, 2).missing(),                         // of 3 bits
      Input(0, 0).part({4, 32}, 4).part({2, 4}, 4).part({2, 32}, 2).part({32}, 4, {}, groups),            // with g_idx
      Input(0, 0).part({32, 4}, 4).part({1, 4}, 4).part({1, 32}, 2).missing(),                            // AWQ
      Input(1, 0).part({64, 1}, 1).part({2}, 4).part({16}, 4).text(0).missing().missing(),                // NF4
      Input(1, 0).part({5, 1}, 1).part({5}, 1, u8).part({16}, 4).text(1).part({2}, 4).part({2, 128}, 4),  // nested
      Input(2, 0).part({4, 8}, 1).part({4}, 4).missing(),                                                 // LLM.int8
      Input(3, 2).part({4, 8}, 1).part({1, 2}, 4).missing(),                                         // FP8 in blocks
      Input(3, 0).part({4, 64}, 1).part({4, 1}, 4).missing(),                                        // in rows
      Input(4, 0).part({4, 8}, 1).part({4, 1}, 1),                                                   // FP4 in bytes
      Input(5, 0).part({4, 16}, 1).part({4, 2}, 1).part({1}, 4),                                     // NVFP4
      Input(6, 1).part({2, 8}, 1).part({1}, 2),                                                      // BitNet
      Input(6, 1).part({4, 8}, 1).part({4, 1}, 2),                                                   // Gemma
      Input(7, 0).part({4, 2, 16}, 1).part({4, 2}, 1),                                               // gpt-oss
      Input(8, 3).part({8, 4}, 4).part({8, 4}, 2).sizes(8, 32).part({1, 4}, 4).missing().missing(),  // packed integers
      Input(8, 4).part({8, 3}, 4).part({8, 1}, 2).sizes(8, 32).missing().missing().missing(),        // of 3 bits
      Input(8, 0).part({4, 16}, 1, u8).part({4, 2}, 1, f8_e4m3).missing().missing().missing().part({1}, 4),  // NVFP4
      Input(8, 0).part({4, 16}, 1, u8).part({4, 1}, 1, u8).missing().missing().missing().missing(),          // MXFP4
      Input(9, 0).part({12}, 2).part({2, 1}, 1, {}, "\xFF\x0F").sizes(2, 8).missing().missing(),  // under a mask
      Input(10, 1).part({4, 4}, 4).part({4, 1}, 2).part({4, 1}, 2),                               // MLX
      Input(11, 0).part({4, 8}, 1).part({8, 1}, 2).part({8, 1}, 2).number(4).number(1).sizes(8, 8).text(3).text(6),
      Input(11, 0).part({1, 8}, 4, i32).part({8, 1}, 2).part({8, 1}, 2).number(3).number(1).sizes(8, 8).text(4).text(6),
      Input(11, 0).part({4, 8}, 1).part({1, 8}, 2).part({1, 8}, 2).number(4).number(0).sizes(8, 8).text(3).text(6),
      Input(12, 0).part({4, 8}, 1).part({4, 1}, 2),                                  // quanto
      Input(13, 0).part({2, 8}, 1).part({4, 1}, 2).part({4, 1}, 2).part({2}, 2),     // of 4 bits
      Input(14, 0, 0, 7).part({4, 8}, 1).part({4, 1}, 4).part({4, 1}, 1).missing(),  // torchao
      Input(15, 0).part({64, 1}, 1).part({2}, 4).part({16}, 4).text(0),              // FP4
      Input(16, 0).part({4, 8}, 1).part({1}, 4).missing(),                           // Mistral's FP8
      Input(17, 0).part({4, 8}, 1).part({1}, 4).missing(),                           // ComfyUI's
      Input(18, 0).part({4, 2, 16}, 1).part({4, 2}, 1),                              // OpenAI's gpt-oss
      Input(19, 0).part({4, 8}, 1).part({4, 1}, 4).part({4, 1}, 1).missing(),        // torchao in a pickle
      Input(20, 5).part({4, 32}, 4).part({1, 4}, 4).part({1, 32}, 2).missing(),      // AutoRound
  };
}

inline std::vector<std::string> quantized() {
  constexpr int kSchemes = 21, kInputs = 12, kBytes = 400;
  std::vector<std::string> inputs = honest_quantized();
  inputs.emplace_back();
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
