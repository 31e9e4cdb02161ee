#include "maps.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include <ballast/conversions.hpp>
#include <ballast/weight_map.hpp>

namespace ballast::cli {
namespace {

constexpr std::string_view kTransformers = "transformers";

// The model_type if the map is transformers' own, else nothing.
std::optional<std::string> type_of_conversions(const Session& session, const Checkpoint& checkpoint,
                                               const std::string& map) {
  if (!is_map_of_transformers(map)) return std::nullopt;
  if (map == kTransformers) return conversion_type(checkpoint, session.open_options());
  return map.substr(kTransformers.size() + 1);
}

}  // namespace

bool is_map_of_transformers(const std::string& map) {
  return map == kTransformers || (map.starts_with(kTransformers) && map[kTransformers.size()] == ':');
}

Checkpoint with_maps(const Session& session, Checkpoint checkpoint, const std::string& map,
                     const std::string& map_back) {
  if (!map_back.empty()) {
    const auto type = type_of_conversions(session, checkpoint, map_back);
    checkpoint = type ? without_conversions(std::move(checkpoint), *type, session.open_options())
                      : apply(std::move(checkpoint), WeightMap::load(map_back).reversed());
  }
  if (!map.empty()) {
    const auto type = type_of_conversions(session, checkpoint, map);
    checkpoint = type ? with_conversions(std::move(checkpoint), *type, session.open_options())
                      : apply(std::move(checkpoint), WeightMap::load(map));
  }
  return checkpoint;
}

}  // namespace ballast::cli
