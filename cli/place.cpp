#include "place.hpp"

namespace ballast::cli {
namespace {

std::filesystem::path folder_of(const std::string& target) {
  std::error_code ignored;
  const std::filesystem::path path = target;
  return std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
}

}  // namespace

Places::Places(const Checkpoint& checkpoint) : folder_(folder_of(checkpoint.target)) {}

std::string Places::relative(const std::string& path) const {
  const std::filesystem::path whole = path;
  const std::filesystem::path inside = folder_.empty() ? whole : whole.lexically_relative(folder_);
  const bool leads_outside = inside.empty() || *inside.begin() == "..";
  return leads_outside ? whole.filename().string() : inside.string();
}

std::optional<Place> Places::of(const Tensor& tensor) {
  if (!tensor.storage()) return std::nullopt;
  const auto location = tensor.storage()->location();
  if (!location) return std::nullopt;
  if (location->file != last_path_) {
    last_path_ = location->file;
    last_relative_ = relative(last_path_);
  }
  Place place{last_relative_, std::nullopt};
  if (tensor.is_contiguous()) place.offset = location->offset + tensor.offset();
  return place;
}

}  // namespace ballast::cli
