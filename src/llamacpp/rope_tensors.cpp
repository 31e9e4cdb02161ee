#include "llamacpp/rope_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

constexpr std::uint64_t kMostDimensions = 1 << 16;

double number_or(const Json& object, std::string_view key, double otherwise) {
  return real_number(object.find(key)).value_or(otherwise);
}

// How far each embedding is rotated: all of a head, unless config.json says otherwise.
std::uint64_t head_dimensions(const ModelConfig& config) {
  std::uint64_t size = 0;
  if (!is_null(config.find("head_dim"))) {
    size = config.count("head_dim");
  } else {
    const std::uint64_t heads = config.count("num_attention_heads");
    size = heads == 0 ? 0 : config.count("hidden_size") / heads;
  }
  if (size == 0 || size > kMostDimensions) throw Error(Errc::malformed, fmt::format("a head of {} dimensions", size));
  return size;
}

Tensor tensor_of(const std::vector<float>& factors) {
  for (const float factor : factors) {
    if (!std::isfinite(factor) || factor <= 0)
      throw Error(Errc::malformed, fmt::format("a factor of the rotary embedding would be {}", factor));
  }
  return Tensor::from_values<float>(DType::f32, {factors.size()}, factors);
}

// What slow rotations are divided by, so that a model sees farther than it was trained to: fast ones stay, and those in
// between are in between. Each operation is one of F32, in the order of the converter's.
Tensor llama3_factors(const ModelConfig& config, const Json& rope) {
  const std::uint64_t dimensions = head_dimensions(config);
  const auto base = static_cast<float>(number_or(rope, "rope_theta", 10000));
  const double factor = number_or(rope, "factor", 8), low = number_or(rope, "low_freq_factor", 1);
  const double high = number_or(rope, "high_freq_factor", 4);
  const double old = number_or(rope, "original_max_position_embeddings", 8192);
  std::vector<float> factors;
  for (std::uint64_t i = 0; i < dimensions; i += 2) {
    const float frequency = 1.0F / std::pow(base, static_cast<float>(i) / static_cast<float>(dimensions));
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
    if (wavelength < old / high) {
      factors.push_back(1);
    } else if (wavelength > old / low) {
      factors.push_back(static_cast<float>(factor));
    } else {
      const float smooth =
          (static_cast<float>(old) / wavelength - static_cast<float>(low)) / static_cast<float>(high - low);
      factors.push_back(1.0F / ((1.0F - smooth) / static_cast<float>(factor) + smooth));
    }
  }
  return tensor_of(factors);
}

Tensor listed_factors(const Json& rope, std::string_view key, std::uint64_t count) {
  const Json* found = rope.find(key);
  if (is_null(found)) throw Error(Errc::malformed, fmt::format("config.json has no {}", quote(key)));
  std::vector<float> factors;
  for (const Json& factor : found->list()) factors.push_back(static_cast<float>(factor.number()));
  if (factors.size() != count)
    throw Error(Errc::malformed, fmt::format("{} has {} factors, not {}", quote(key), factors.size(), count));
  return tensor_of(factors);
}

// Half as many as there are dimensions that rotate.
std::uint64_t factor_count(const ModelConfig& config, const Json& rope) {
  const std::uint64_t heads = config.count("num_attention_heads");
  if (heads == 0) throw Error(Errc::malformed, "config.json has no heads");
  const auto size = static_cast<double>(config.count("hidden_size"));
  const double share = config.architecture == "minicpm" ? 1 : number_or(rope, "partial_rotary_factor", 1);
  const auto rotated = truncated(share * size);
  if (!rotated || *rotated < 0)
    throw Error(Errc::malformed, fmt::format("{} of {} dimensions cannot rotate", share, size));
  return static_cast<std::uint64_t>(*rotated) / heads / 2;
}

}  // namespace

NamedTensors rope_tensors(const ModelConfig& config) {
  constexpr std::string_view kListed[] = {"phi3", "phimoe", "minicpm"};
  constexpr std::string_view kLlamas[] = {"llama", "mistral3",    "smollm3",   "granite",
                                          "arcee", "llama-embed", "granitemoe"};
  const auto is_one_of = [&](auto& architectures) {
    return std::ranges::find(architectures, config.architecture) != std::end(architectures);
  };
  if (!is_one_of(kListed) && !is_one_of(kLlamas)) return {};
  const Json all = rope_parameters(config);
  const Json& rope = of_full_attention(all);
  const bool has_lists = is_true(rope.find("long_factor")) || is_true(rope.find("short_factor"));
  if (is_one_of(kListed) && has_lists) {
    const std::uint64_t count = factor_count(config, rope);
    return {{"rope_factors_long.weight", listed_factors(rope, "long_factor", count)},
            {"rope_factors_short.weight", listed_factors(rope, "short_factor", count)}};
  }
  const Json* type = rope.find("rope_type");
  const bool is_llama3 = type != nullptr && type->is_text() && lower_case(type->text()) == "llama3";
  if (is_one_of(kLlamas) && is_llama3) return {{"rope_freqs.weight", llama3_factors(config, rope)}};
  return {};
}

}  // namespace ballast::llamacpp
