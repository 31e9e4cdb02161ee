#include <ballast/checkpoint.hpp>

#include <array>

namespace ballast {

Checkpoint::Checkpoint() = default;
Checkpoint::Checkpoint(const Checkpoint& other) = default;
Checkpoint::Checkpoint(Checkpoint&& other) noexcept = default;
Checkpoint& Checkpoint::operator=(const Checkpoint& other) = default;
Checkpoint& Checkpoint::operator=(Checkpoint&& other) noexcept = default;
Checkpoint::~Checkpoint() = default;

std::string_view name(Format format) noexcept {
  static constexpr std::array<std::string_view, 10> kNames = {
      "safetensors", "torch-zip", "torch-legacy", "torch-tar", "torchscript", "pickle", "gguf", "npy", "npz", "archive",
  };
  static_assert(kNames.size() == static_cast<std::size_t>(Format::archive) + 1);
  return kNames[static_cast<std::size_t>(format)];
}

}  // namespace ballast
