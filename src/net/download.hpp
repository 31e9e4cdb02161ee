// Downloads: whole files, in pieces that several connections bring, into partial files that a later run continues.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ballast/progress.hpp>

#include "net/http_client.hpp"

namespace ballast::net {

// A file that is wanted. It gets its name when all of its bytes are there and have the digest that was told.
struct Download {
  Remote remote;              // its total must be known; its digest is 64 digits of SHA-256, 40 of a Git blob, or empty
  std::string path;           // where the file goes
  std::string partial;        // what is there of it; the pieces that are complete are recorded in `partial` + ".pieces"
  std::string lock;           // a file that is locked meanwhile, so that nobody fetches the same at the same time
  bool removes_lock = false;  // in the end
  bool replaces = false;      // a file at `path` is another one; else it is this one, which somebody else has completed
};

struct DownloadOptions {
  unsigned in_flight = 8;
  bool is_durable = true;  // on the disk before it has its name
  Progress progress{};
};

// Fetches all of them. A file that somebody else has completed meanwhile is left alone. Pieces of an earlier run count
// if they are of the same bytes: by the digest, which is checked in the end, or by a strong ETag and if the system has
// not been started anew. Throws Errc::mismatch if the bytes have another digest; they are removed then.
void download(HttpClient& client, std::vector<Download>& downloads, const DownloadOptions& options);

// The digest of a file, of the kind that `like` is: 64 digits, or 40.
std::string digest_of_file(const std::string& path, std::string_view like);

}  // namespace ballast::net
