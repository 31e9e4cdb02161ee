#include "llamacpp/rope_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

constexpr std::uint64_t kMostDimensions = 1 << 16;

const Json* member(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

double number_or(const Json& object, std::string_view key, double otherwise) {
  const Json* found = member(object, key);
  return found == nullptr ? otherwise : found->number();
}

std::uint64_t count_at(const Json& config, std::string_view key) {
  const Json* found = member(config, key);
  if (found == nullptr) throw Error(Errc::malformed, fmt::format("config.json has no {}", quote(key)));
  return found->count();
}

// How far each embedding is rotated: all of a head, unless config.json says otherwise.
std::uint64_t head_dimensions(const Json& config) {
  std::uint64_t size = 0;
  if (const Json* own = member(config, "head_dim")) {
    size = own->count();
  } else {
    const std::uint64_t heads = count_at(config, "num_attention_heads");
    size = heads == 0 ? 0 : count_at(config, "hidden_size") / heads;
  }
  if (size == 0 || size > kMostDimensions) throw Error(Errc::malformed, fmt::format("a head of {} dimensions", size));
  return size;
}

// What rotates: newer configurations keep all of it in one place, and by kind of attention.
struct Rope {
  Json parameters;
  std::string type;
};

Rope rope_of(const Json& config) {
  Rope rope;
  const Json* found = member(config, "rope_parameters");
  if (found == nullptr || !found->is_object()) found = member(config, "rope_scaling");
  if (found == nullptr || !found->is_object()) return rope;
  if (const Json* full = member(*found, "full_attention")) found = full;
  rope.parameters = *found;
  const Json* type = member(*found, "rope_type");
  if (type == nullptr) type = member(*found, "type");
  if (type != nullptr && type->is_text()) rope.type = lower_case(type->text());
  return rope;
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
Tensor llama3_factors(const Json& config, const Json& rope) {
  const std::uint64_t dimensions = head_dimensions(config);
  const auto base = static_cast<float>(number_or(rope, "rope_theta", number_or(config, "rope_theta", 10000)));
  const double factor = number_or(rope, "factor", 8), low = number_or(rope, "low_freq_factor", 1);
  const double high = number_or(rope, "high_freq_factor", 4);
  const double old =
      number_or(rope, "original_max_position_embeddings", number_or(config, "original_max_position_embeddings", 8192));
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
  const Json* found = member(rope, key);
  if (found == nullptr) throw Error(Errc::malformed, fmt::format("config.json has no {}", quote(key)));
  std::vector<float> factors;
  for (const Json& factor : found->list()) factors.push_back(static_cast<float>(factor.number()));
  if (factors.size() != count)
    throw Error(Errc::malformed, fmt::format("{} has {} factors, not {}", quote(key), factors.size(), count));
  return tensor_of(factors);
}

// Half as many as there are dimensions that rotate.
std::uint64_t factor_count(const Json& config, std::string_view architecture) {
  const std::uint64_t heads = count_at(config, "num_attention_heads");
  if (heads == 0) throw Error(Errc::malformed, "config.json has no heads");
  const auto size = static_cast<double>(count_at(config, "hidden_size"));
  const double share = architecture == "minicpm" ? 1 : number_or(config, "partial_rotary_factor", 1);
  const double rotated = share * size;
  if (!(rotated >= 0 && rotated < 0x1p32))
    throw Error(Errc::malformed, fmt::format("{} of {} dimensions cannot rotate", share, size));
  return static_cast<std::uint64_t>(rotated) / heads / 2;
}

bool has_values(const Json& rope, std::string_view key) {
  const Json* found = member(rope, key);
  return found != nullptr && found->is_list() && !found->list().empty();
}

}  // namespace

NamedTensors rope_tensors(const Json& config, std::string_view architecture) {
  const Rope rope = rope_of(config);
  const bool is_listed = architecture == "phi3" || architecture == "phimoe" || architecture == "minicpm";
  if (is_listed && (has_values(rope.parameters, "long_factor") || has_values(rope.parameters, "short_factor"))) {
    const std::uint64_t count = factor_count(config, architecture);
    return {{"rope_factors_long.weight", listed_factors(rope.parameters, "long_factor", count)},
            {"rope_factors_short.weight", listed_factors(rope.parameters, "short_factor", count)}};
  }
  constexpr std::string_view kLlamas[] = {"llama", "mistral3",    "smollm3",   "granite",
                                          "arcee", "llama-embed", "granitemoe"};
  const bool is_llama = std::ranges::find(kLlamas, architecture) != std::end(kLlamas);
  if (is_llama && rope.type == "llama3") return {{"rope_freqs.weight", llama3_factors(config, rope.parameters)}};
  return {};
}

}  // namespace ballast::llamacpp
