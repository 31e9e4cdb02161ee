#include "cache/user_folders.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <ballast/cache.hpp>

#include <cstdlib>
#include <filesystem>

namespace ballast {
namespace {

namespace fs = std::filesystem;

// The XDG specification says that a relative path is to be ignored.
std::string folder_in(const char* variable, const char* below_home) {
  if (const char* folder = std::getenv(variable); folder != nullptr && folder[0] == '/')
    return (fs::path(folder) / "ballast").string();
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return (fs::path(home) / below_home / "ballast").string();
  return "";
}

}  // namespace

std::string cache_folder() { return folder_in("XDG_CACHE_HOME", ".cache"); }
std::string state_folder() { return folder_in("XDG_STATE_HOME", ".local/state"); }

void make_user_folder(const std::string& folder) {
  std::error_code ignored;
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  mkdir(folder.c_str(), S_IRWXU);
}

bool is_private_folder(const std::string& folder) {
  struct stat found = {};
  return stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace ballast
