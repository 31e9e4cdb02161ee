// What no model of an architecture is without, by llama.cpp's names.
#pragma once

#include <span>
#include <string_view>

namespace ballast::llamacpp {

// Names have a space between two, and | between those of which one is enough. ".weight" is left out: "attn_q|attn_qkv".
struct NeededTensors {
  std::string_view architectures;  // as general.architecture has them, with a space before and behind each
  std::span<const std::string_view> of_block{};
  std::string_view outside = "token_embd output_norm";
};

// Null if nothing is known of the architecture.
const NeededTensors* needed_tensors(std::string_view architecture) noexcept;

// Calls use(alternatives) for each of the names that are needed, which have spaces between them, or "|".
template <class Use>
void for_each_name(std::string_view names, char between, Use use) {
  while (!names.empty()) {
    const std::size_t end = names.find(between);
    use(names.substr(0, end));
    names.remove_prefix(end == names.npos ? names.size() : end + 1);
  }
}

}  // namespace ballast::llamacpp
