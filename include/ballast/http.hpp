// Checkpoints behind https:// addresses, read by ranges. open() takes such an address wherever it takes a path; this
// header is for programs that want to choose how.
//
// Everything may be called from several threads at once. libcurl is loaded when it is first needed.
//
// Example:
//   HttpOptions http;
//   http.connect_milliseconds = 3'000;
//   const Checkpoint checkpoint = open("https://example.org/model.safetensors", {.files = http_files(http)});
#pragma once

#include <string>
#include <string_view>

#include <ballast/source.hpp>

namespace ballast {

struct HttpOptions {
  bool allow_plain = false;  // http:// for other hosts than this one
  std::string ca_file{};     // certificates to believe; by default SSL_CERT_FILE, CURL_CA_BUNDLE, or the system's
  unsigned in_flight = 8;    // requests at once, for one read
  unsigned attempts = 5;     // without progress
  unsigned connect_milliseconds = 10'000;
  unsigned idle_seconds = 30;  // without a byte
};

// Whether a target is an address: "https://…", "http://…".
bool is_url(std::string_view target);

// The files that a target is opened through: those that were given, unless the target is an address and they are the
// local ones. Every function that takes a target and OpenOptions asks this.
FilesPtr files_for(std::string_view target, const FilesPtr& given);

// Files by their addresses. They cannot be listed: name the file or the index. An answer is believed only if it fits
// the question and the answers before; a file that changes meanwhile is Errc::changed.
FilesPtr http_files(const HttpOptions& options = {});

}  // namespace ballast
