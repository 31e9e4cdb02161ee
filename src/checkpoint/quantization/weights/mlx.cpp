// MLX's groups, which transformers calls metal: an element is scale * code + bias.
//
//   part               holds
//   weight             words [out, in * bits / 32]: the codes of a row are a stream of bits
//   scales             [out, in / group_size]; bytes in the modes mxfp4 and nvfp4, whose codes are FP4
//   biases, qbiases    as scales
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/checked.hpp"

namespace ballast {
namespace {

struct MlxSettings {
  std::optional<std::int64_t> bits, group_size;
  std::string_view mode;
  bool is_for_all = true;  // whether no module may have settings of its own that are not found by its name
};

void add_mlx_settings(const Json& config, MlxSettings& settings) {
  const auto number = [&](std::string_view key, std::optional<std::int64_t>& value) {
    const Json* found = config.find(key);
    if (found != nullptr && found->is_integer() && found->number() > 0 && found->number() < 1024)
      value = found->integer();
  };
  number("bits", settings.bits);
  number("group_size", settings.group_size);
  if (const Json* mode = config.find("mode"); mode != nullptr && mode->is_text()) settings.mode = mode->text();
}

// Those of all modules, and over them those of the module itself.
MlxSettings mlx_settings_of(const PackedModule& module) {
  MlxSettings settings;
  add_mlx_settings(module.quantization().config, settings);
  const Json& config = module.quantization().config;
  const Json* own = config.find(module.base());
  if (own != nullptr && own->is_object()) {
    add_mlx_settings(*own, settings);
  } else if (config.is_object()) {
    settings.is_for_all = std::ranges::none_of(config.members(), [](const auto& of) { return of.second.is_object(); });
  }
  return settings;
}

// 32 bits a word and so many words for each scale tell the product of both, and a configuration tells one of them.
unsigned mlx_bits_of(const PackedModule& module, const MlxSettings& settings, std::uint64_t words,
                     std::uint64_t groups) {
  constexpr std::array kBits = {2u, 3u, 4u, 5u, 6u, 8u};
  constexpr std::array<std::uint64_t, 4> kGroups = {16, 32, 64, 128};
  std::optional<unsigned> only;
  bool is_ambiguous = false;
  for (const unsigned bits : kBits) {
    for (const std::uint64_t group : kGroups) {
      if (checked_mul(groups, group * bits) != checked_mul(words, 32)) continue;
      if (settings.bits == bits && (!settings.group_size || static_cast<std::uint64_t>(*settings.group_size) == group))
        return bits;
      is_ambiguous = is_ambiguous || only.has_value();
      only = bits;
    }
  }
  if (settings.bits && settings.is_for_all)
    module.complain(
        fmt::format("has {} words and {} scales a row, which do not fit the {} bits that its configuration says", words,
                    groups, *settings.bits));
  if (is_ambiguous) module.refuse("is packed in words, and no configuration that fits says how many bits a value has");
  if (!only) module.complain(fmt::format("has {} words and {} scales a row", words, groups));
  return *only;
}

}  // namespace

Tensor read_mlx(PackedModule& module) {
  const Tensor words = module.need(".weight"), scales = module.need(".scales");
  const Tensor* biases = module.find(".qbiases");
  const std::string_view ending = biases != nullptr ? ".qbiases" : ".biases";
  if (biases == nullptr) biases = module.find(".biases");
  const std::size_t rank = words.rank();
  if (rank < 2 || scales.rank() != rank || scales.shape()[rank - 1] == 0)
    module.complain(fmt::format("has scales of shape {} for words of shape {}", to_string(scales.shape()),
                                to_string(words.shape())));
  const MlxSettings settings = mlx_settings_of(module);
  const std::uint64_t in_row = words.shape()[rank - 1];
  const unsigned bits = mlx_bits_of(module, settings, in_row, scales.shape()[rank - 1]);
  std::vector<std::uint64_t> sizes(words.shape().begin(), words.shape().end());
  sizes.back() = in_row * 32 / bits;  // fits: the words do
  const Shape shape{std::span<const std::uint64_t>(sizes)};

  PackedRows rows{.row_bytes = in_row * 4, .codes = integer_codes(bits, 0)};
  rows.scale = numbers_by_shape(module, ".scales", scales, shape);
  rows.dtype = scales.dtype();
  const bool is_fp4 = biases == nullptr && scales.dtype() == DType::u8 && bits == 4;
  if (is_fp4) rows.scale = numbers_in_groups(module, ".scales", scales, shape, settings.mode == "nvfp4" ? 16 : 32);
  if (biases != nullptr) {
    module.check_shape(ending, *biases, scales.shape());
    if (!is_floating(biases->dtype())) module.complain(fmt::format("has biases of {}", name(biases->dtype())));
    rows.bias = numbers_by_shape(module, ending, *biases, shape);
  } else if (is_fp4) {
    rows.codes = fp4_codes();
    rows.dtype = module.quantization().dtype;
    if (settings.mode == "nvfp4")
      rows.scale.values = scales.bitcast(DType::f8_e4m3);
    else
      rows.scale.exponent_bias = 127;
  } else {
    throw MissingPart{std::string(module.base()) + ".biases"};
  }
  if (rows.dtype != DType::f16 && rows.dtype != DType::bf16 && rows.dtype != DType::f32)
    module.complain(fmt::format("has scales of {}", name(rows.dtype)));
  return rows_of(module, words, shape, std::move(rows));
}

}  // namespace ballast
