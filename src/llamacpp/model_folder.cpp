#include "llamacpp/model_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <ballast/error.hpp>

#include "io/section.hpp"
#include "llamacpp/python_json.hpp"

namespace ballast::llamacpp {
namespace {

// The folder's own name, also if it was called "." or "model/". An address has no such other names.
std::string own_name(const std::string& folder) {
  std::error_code failed;
  const bool is_address = folder.find("://") != std::string::npos;
  const auto path = is_address ? std::filesystem::path(folder) : std::filesystem::canonical(folder, failed);
  const std::string whole = failed ? folder : path.string();
  const std::size_t end = whole.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const std::size_t slash = whole.find_last_of('/', end);
  return whole.substr(slash + 1, end - slash);
}

}  // namespace

ModelFolder::ModelFolder(std::string target, const OpenOptions& options)
    : files_(options.files), limits_(options.limits), folder_(std::move(target)) {
  is_folder_ = files_->list(folder_).has_value();
  const std::size_t slash = folder_.find_last_of('/');
  const std::string around = slash == std::string::npos ? "." : folder_.substr(0, slash);
  name_ = own_name(is_folder_ ? folder_ : around);
}

std::string ModelFolder::path(const std::string& file) const {
  const std::size_t slash = file.find('/');
  const std::string first = file.substr(0, slash);
  std::string path = is_folder_ ? files_->inside(folder_, first) : files_->beside(folder_, first);
  return slash == std::string::npos ? path : files_->inside(path, file.substr(slash + 1));
}

bool ModelFolder::has(const std::string& file) const { return files_->exists(path(file)); }

std::optional<std::string> ModelFolder::text(const std::string& file) const {
  if (!has(file)) return std::nullopt;
  const std::string whole = path(file);
  return std::string(io::read_text(*files_->open(whole), limits_.max_index_bytes)->view());
}

std::optional<Json> ModelFolder::json(const std::string& file) const {
  const auto found = text(file);
  if (!found) return std::nullopt;
  try {
    return parse_python_json(*found);
  } catch (Error& error) {
    throw error.in(path(file));
  }
}

std::vector<std::string> ModelFolder::list(const std::string& folder) const {
  auto names = files_->list(path(folder)).value_or(std::vector<std::string>());
  std::ranges::sort(names);
  return names;
}

}  // namespace ballast::llamacpp
