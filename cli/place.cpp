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
  if (tensor.storage() != last_storage_) {
    last_storage_ = tensor.storage();
    last_location_ = last_storage_->location();
  }
  if (!last_location_) return std::nullopt;
  if (last_location_->file != last_path_) {
    last_path_ = last_location_->file;
    last_relative_ = relative(last_path_);
  }
  Place place{last_relative_, std::nullopt};
  if (tensor.is_contiguous()) place.offset = last_location_->offset + tensor.offset();
  return place;
}

void write_files(JsonWriter& json, const Checkpoint& checkpoint) {
  const Places places(checkpoint);
  json.key("files");
  json.begin_array(JsonWriter::Layout::lines);
  for (const CheckpointFile& file : checkpoint.files) {
    json.begin_object();
    json.field("file", places.relative(file.path));
    json.field("bytes", file.bytes);
    json.end();
  }
  json.end();
}

}  // namespace ballast::cli
