#include "checkpoint/links.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ballast {
namespace {

// A snapshot in the Hub's cache consists of links to models--ORG--NAME/blobs.
bool is_blob_of_snapshot(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed, too;
  const fs::path blob = fs::canonical(path, failed), folder = fs::canonical(fs::path(path).parent_path(), too);
  if (failed || too || blob.parent_path().filename() != "blobs") return false;
  const fs::path snapshots = blob.parent_path().parent_path() / "snapshots";
  return std::ranges::mismatch(snapshots, folder).in1 == snapshots.end();
}

}  // namespace

bool leads_out(const Files& files, const std::string& path) {
  return files.leaves_its_folder(path) && !is_blob_of_snapshot(path);
}

}  // namespace ballast
