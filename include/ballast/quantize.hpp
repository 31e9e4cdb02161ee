// quantize: the weights of a model in forms of fewer bits that transformers loads: FP8 with block scales, NF4, MXFP4.
//
// quantize() may be called from several threads at once, and so may reads of its result. The result shares the storages
// of the weights and keeps them alive.
//
// Example:
//   const Checkpoint model = open("model/"), small = quantize(model, {.scheme = WeightScheme::nf4});
//   SavePlan plan = plan_save(small, "small/");
//   add_sidecars(plan, find_sidecars(model), model, small);  // config.json gets its quantization_config
//   execute(plan);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

enum class WeightScheme : std::uint8_t {
  fp8_block,   // FP8 E4M3, an F32 scale for each 128 x 128 values, as DeepSeek and transformers have it
  nf4,         // bitsandbytes' NF4, an F32 scale for each 64 values
  nf4_double,  // the same, with scales of 8 bits
  mxfp4,       // FP4 E2M1, an exponent for each 32 values: as gpt-oss has its experts, or compressed-tensors its layers
};
inline constexpr std::array<std::string_view, 4> kWeightSchemeNames = {"fp8-block", "nf4", "nf4-double", "mxfp4"};
constexpr std::string_view name(WeightScheme scheme) noexcept {
  return kWeightSchemeNames[static_cast<std::size_t>(scheme)];
}
std::optional<WeightScheme> weight_scheme(std::string_view name) noexcept;

struct QuantizeOptions {
  WeightScheme scheme = WeightScheme::fp8_block;
  // Globs over whole names: of all matrices called "….weight", those that one of them matches. If there is none, the
  // linear layers are quantized that transformers would quantize: those inside the numbered blocks of the model, and no
  // embedding, head, norm, or router of experts.
  std::vector<std::string> weights{};
};

// Every weight that is chosen becomes the parts that its form has, in its place; all others stay as they are. Codes are
// the nearest ones, with scales that the largest values of a block give: the bits are those that transformers,
// bitsandbytes and compressed-tensors give. docs/quantized.md has the forms.
//
// Checkpoint::quantization of the result says what was made, with the quantization_config that config.json needs.
// Notes say how many weights were quantized, and which matrices were not.
//
// Lazy: nothing is read by this call. Reading the result reads a weight once for its scales and once for its codes
// (nf4_double: twice more). A value that is not finite is Errc::unsupported then.
// Errc::unsupported if weights are quantized already, naming one, and if nothing is left to quantize.
Checkpoint quantize(Checkpoint checkpoint, const QuantizeOptions& options);

}  // namespace ballast
