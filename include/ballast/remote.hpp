// Checkpoints elsewhere: https://host/path, hf://org/repo[@revision][/path], s3://bucket/key. open() takes such an
// address wherever it takes a path, and reads by ranges what it needs; this header is for programs that want to choose
// how.
//
// Everything may be called from several threads at once. libcurl is loaded when it is first needed.
//
// Example:
//   RemoteOptions elsewhere;
//   elsewhere.http.connect_milliseconds = 3'000;
//   elsewhere.hub.cache_dir = "models";
//   const Checkpoint checkpoint = open("hf://org/model", {.remote = remote_files(elsewhere)});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/open_options.hpp>
#include <ballast/source.hpp>

namespace ballast {

struct HttpOptions {
  bool allow_plain = false;  // http:// for other hosts than this one
  std::string ca_file{};     // certificates to believe; by default CURL_CA_BUNDLE, SSL_CERT_FILE, the system's
  std::vector<std::string> headers{};  // "Name: value", for the hosts of the targets themselves, not of redirects
  bool netrc = false;                  // names and passwords from ~/.netrc
  unsigned in_flight = 8;              // requests at once, for one read
  unsigned attempts = 5;               // without progress
  unsigned connect_milliseconds = 10'000;
  unsigned idle_seconds = 30;                           // without a byte
  unsigned request_seconds = 0;                         // for one request in all; 0 is no limit
  std::uint64_t keep_bytes = std::uint64_t{256} << 20;  // of all files together, in memory
  std::function<bool()> keep_going{};  // asked several times a second while waiting, by any thread; false stops it
};

// What is empty here is taken from where the Hub's own programs take it: HF_ENDPOINT, HF_HUB_CACHE, HF_HOME, HF_TOKEN,
// the token file, HF_HUB_OFFLINE.
struct HubOptions {
  std::string endpoint{};   // "https://huggingface.co"
  std::string cache_dir{};  // read first; only fetch() writes there
  std::string token{};      // goes to the endpoint's own host and port, and nowhere else
  bool offline = false;     // exactly the cache; also if HF_HUB_OFFLINE says so
};

struct RemoteOptions {
  HttpOptions http{};
  HubOptions hub{};
};

// Whether a target is an address: "https://…", "http://…", "hf://…", "s3://…".
bool is_remote(std::string_view target);

// What PEFT and transformers take where they load something: "org/name" is that repository of the Hub, unless there is
// something of that name here; everything else is itself.
std::string path_or_repository(const std::string& text);

// Files by their addresses. Only folders of the Hub can be listed: elsewhere, name the file or the index. An answer is
// believed only if it fits the question and the answers before; a file that changes meanwhile is Errc::changed.
FilesPtr remote_files(const RemoteOptions& options = {});

// The options to open one target with: if the target is an address and the files are the local ones, the remote ones
// take their place. Every function that takes a target and OpenOptions asks this.
OpenOptions options_for(std::string_view target, OpenOptions options);

}  // namespace ballast
