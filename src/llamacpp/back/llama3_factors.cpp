#include "llamacpp/back/llama3_factors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>

#include "llamacpp/back/facts.hpp"
#include "llamacpp/back/round_number.hpp"
#include "llamacpp/rope_tensors.hpp"

namespace ballast::llamacpp::back {
namespace {

// Those of published models come first.
constexpr double kLowFactors[] = {1, 2, 0.5, 1.5, 3, 4};
constexpr double kHighFactors[] = {4, 8, 2, 3, 16, 32, 1.5, 6, 64};
constexpr double kLengths[] = {8192, 4096, 2048, 16384, 32768, 65536, 131072, 262144, 1024, 512, 256};

struct Llama3 {
  double factor, low, high, old_length;
};

Json as_json(const Llama3& of) {
  return Json::Members{{"factor", of.factor},
                       {"low_freq_factor", of.low},
                       {"high_freq_factor", of.high},
                       {"original_max_position_embeddings", static_cast<std::int64_t>(of.old_length)},
                       {"rope_type", "llama3"}};
}

bool gives(const Json& scaling, const std::vector<float>& factors, double base) {
  ModelConfig config;
  config.architecture = "llama";
  config.values =
      Json::Members{{"head_dim", std::uint64_t{2 * factors.size()}}, {"rope_theta", base}, {"rope_scaling", scaling}};
  return rope_tensors(config).at(0).second.values<float>() == factors;
}

// Between those that stay and those that are divided by all of the factor: how much of a rotation stays, by frequency.
struct Between {
  double frequency, kept;
};

std::vector<Between> those_between(const std::vector<float>& factors, double factor, double base) {
  std::vector<Between> found;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] <= 1 || factors[i] >= factor) continue;
    const double part = static_cast<double>(i) / static_cast<double>(factors.size());
    const double frequency = std::pow(base, -part) / (2 * std::numbers::pi);
    found.push_back({frequency, (1 / factors[i] - 1 / factor) / (1 - 1 / factor)});
  }
  return found;
}

// kept = (old * frequency - 1) / (high - 1), a line through all points.
std::optional<std::pair<double, double>> high_and_length(const std::vector<Between>& points) {
  if (points.size() < 2) return std::nullopt;
  const Between &a = points.front(), &b = points.back();
  const double slope = (a.kept - b.kept) / (a.frequency - b.frequency), below = slope * a.frequency - a.kept;
  if (!std::isfinite(slope) || !(below > 0)) return std::nullopt;
  return std::pair(1 + 1 / below, slope / below);
}

}  // namespace

Json llama3_scaling(const std::vector<float>& factors, double base) {
  constexpr double kLongest = 1 << 30;
  if (factors.empty() || !(base > 1)) return {};
  const double factor = shortest(*std::ranges::max_element(factors));
  if (!(factor > 1)) return {};

  const auto try_with = [&](double low, double high, double old_length) -> Json {
    const double whole = std::round(old_length);
    if (!(whole >= 1) || whole > kLongest || !(high > low)) return {};
    Json scaling = as_json({factor, low, high, whole});
    return gives(scaling, factors, base) ? scaling : Json();
  };
  const std::vector<Between> points = those_between(factors, factor, base);
  for (const double low : kLowFactors) {
    for (const double high : kHighFactors) {
      std::vector<double> lengths(std::begin(kLengths), std::end(kLengths));
      if (!points.empty()) lengths = {(points.front().kept * (high - low) + low) / points.front().frequency};
      for (const double length : lengths) {
        Json found = try_with(low, high, length);
        if (!found.is_null()) return found;
      }
    }
  }
  const auto line = high_and_length(points);
  if (!line) return {};
  Json found;
  round_number(line->first, [&](double high) {
    found = try_with(1, high, line->second);
    return !found.is_null();
  });
  return found;
}

}  // namespace ballast::llamacpp::back
