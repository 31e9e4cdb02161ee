// fetch(): what a remote target names, whole, onto this machine: into the Hub's own cache, or into a folder.
//
// May be called from several threads, and by several programs at once: they wait for each other where they want the
// same file.
//
// Example:
//   const FetchReport report = fetch("hf://org/model", {.include = {"*.safetensors", "*.json"}});
//   const Checkpoint checkpoint = open(report.folder);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/progress.hpp>
#include <ballast/remote.hpp>

namespace ballast {

struct FetchOptions {
  std::vector<std::string> include{}, exclude{};  // globs over paths in the repository
  std::string folder{};                           // only there; if it is empty, into the Hub's cache
  bool overwrite = false;                         // files in the folder that are not from an earlier fetch()
  bool durable = true;                            // on the disk before a file has its name
  unsigned in_flight = 8;                         // requests at once
  Progress progress{};
  RemoteOptions remote{};
};

struct FetchedFile {
  std::string path;   // in the repository; of an address, its last component
  std::string local;  // where it is now
  std::uint64_t bytes = 0;
  // That the Hub lists, 64 digits of SHA-256 or 40 of a Git blob; empty if a server tells none. The bytes were compared
  // with it, unless the file was in the cache already.
  std::string digest;
  bool was_there = false;
};

struct FetchReport {
  std::string target;
  std::string commit;                 // of the Hub; else empty
  std::string folder;                 // that can be opened
  std::vector<FetchedFile> files;     // by path
  std::vector<std::string> left_out;  // names that would lead out of the folder
};

// A whole repository or folder of the Hub, one file, or an index with its shards. An interrupted fetch() is continued
// by the next one. Throws what open() throws for the target; Errc::mismatch if bytes are not those that the Hub lists;
// Errc::invalid_argument if the target is no address, or if it is not on the Hub and there is no folder for it.
FetchReport fetch(const std::string& target, const FetchOptions& options = {});

}  // namespace ballast
