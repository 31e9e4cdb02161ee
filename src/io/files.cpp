#include <algorithm>
#include <filesystem>
#include <system_error>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

namespace ballast {

std::string Files::inside(const std::string& folder, const std::string& file) const {
  return folder.empty() || folder.ends_with('/') ? folder + file : folder + '/' + file;
}

std::string Files::beside(const std::string& name, const std::string& file) const {
  return name.substr(0, name.find_last_of('/') + 1) + file;
}

namespace {

namespace fs = std::filesystem;

class LocalFiles final : public Files {
 public:
  SourcePtr open(const std::string& name) const override { return file_source(name); }

  bool exists(const std::string& name) const override {
    std::error_code ignored;
    return fs::is_regular_file(name, ignored);
  }

  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    std::error_code error;
    if (!fs::is_directory(name, error)) return std::nullopt;
    std::vector<std::string> names;
    for (fs::directory_iterator i(name, error), end; !error && i != end; i.increment(error))
      names.push_back(i->path().filename().string());
    if (error) throw Error(Errc::io, "cannot list the folder: " + error.message()).in(name);
    return names;
  }

  bool leaves_its_folder(const std::string& name) const override {
    std::error_code error;
    if (!fs::is_symlink(name, error)) return false;
    const auto here = fs::canonical(beside(name, "."), error), there = fs::canonical(name, error);
    return !error && there.parent_path() != here;
  }
};

}  // namespace

const FilesPtr& local_files() {
  static const FilesPtr files = std::make_shared<LocalFiles>();
  return files;
}

}  // namespace ballast
