// HubCache: the part of the Hub's cache that belongs to one repository, in the layout of the official client:
//
//   models--ORG--NAME/blobs/ETAG              the bytes, by their digest
//   models--ORG--NAME/refs/REVISION           the commit, without a line end
//   models--ORG--NAME/snapshots/COMMIT/PATH   a relative link into blobs, or the file itself
//   models--ORG--NAME/.no_exist/COMMIT/PATH   an empty file: the commit has no such file
//   models--ORG--NAME/trees/COMMIT.json       what the commit has
//   .locks/models--ORG--NAME/ETAG.lock        against fetching the same file twice at once
//
// Reading makes no file, so that a cache may be read-only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stores/hub/settings.hpp"

namespace ballast::hub {

// A file of a commit.
struct Entry {
  std::string path;
  std::uint64_t size = 0;
  std::string blob_id;     // of Git: 40 digits; for a large file, of its pointer
  std::string lfs_sha256;  // of a large file: 64 digits; else empty

  // The digest of the bytes, which is also the name of the blob.
  const std::string& digest() const { return lfs_sha256.empty() ? blob_id : lfs_sha256; }
};

class HubCache {
 public:
  HubCache(const Settings& settings, const std::string& repository);

  const std::string& folder() const { return folder_; }

  std::optional<std::string> commit_of(const std::string& revision) const;
  std::optional<std::string> find(const std::string& commit, const std::string& path) const;  // a file that is there
  std::optional<std::string> find(const std::string& commit, const Entry& entry) const;       // and has that size
  std::optional<std::string> find_blob(const std::string& digest, std::uint64_t size) const;
  // Every file of a commit; nothing unless all of them are there, with their sizes.
  std::optional<std::vector<Entry>> whole_snapshot(const std::string& commit) const;
  bool is_known_missing(const std::string& commit, const std::string& path) const;

  // The files and folders in a folder of a snapshot; nothing if there is no such folder.
  std::optional<std::vector<std::string>> list(const std::string& commit, const std::string& path) const;

  std::string snapshot(const std::string& commit) const { return folder_ + "/snapshots/" + commit; }
  std::string blob(const std::string& digest) const { return folder_ + "/blobs/" + digest; }
  std::string tree_path(const std::string& commit) const { return folder_ + "/trees/" + commit + ".json"; }
  std::string lock_path(const std::string& digest) const;

  // Each makes the folders that it needs.
  void make_folders() const;
  void set_ref(const std::string& revision, const std::string& commit) const;
  // Puts the blob into the snapshot, as a link to it or as a copy; a file that is there and has its size is left alone.
  void add_link(const std::string& commit, const Entry& entry) const;
  void mark_missing(const std::string& commit, const std::string& path) const;
  void write_tree(const std::string& commit, const std::vector<Entry>& entries) const;

 private:
  std::string root_, name_, folder_;
  bool makes_links_;
};

// Writes a small file so that others see all of it or nothing, with the mode that the umask leaves. Makes its folder.
void write_small_file(const std::string& path, std::string_view text);
std::optional<std::string> read_small_file(const std::string& path);

}  // namespace ballast::hub
