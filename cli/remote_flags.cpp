#include "remote_flags.hpp"

#include <fstream>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "host.hpp"
#include "interrupt.hpp"

namespace ballast::cli {
namespace {

void add_header(std::vector<std::string>& headers, const std::string& line) {
  const std::size_t colon = line.find(':');
  const bool has_line_end = line.find_first_of("\r\n") != std::string::npos;
  if (colon == 0 || colon == std::string::npos || has_line_end) {
    throw Error(Errc::invalid_argument, "a header is NAME:VALUE, on one line")  // which may be a secret
        .hint("--header 'Authorization: Bearer …', or --header @FILE, so that no other program can read it");
  }
  headers.push_back(line);
}

// "Name: value", or "@FILE" with a header on each line.
void add_headers(std::vector<std::string>& headers, const std::string& text) {
  if (!text.starts_with('@')) return add_header(headers, text);
  const std::string path = text.substr(1);
  std::ifstream file(path);
  if (!file) throw Error(Errc::not_found, "cannot be read").in(path);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) add_header(headers, line);
  }
}

}  // namespace

void add_remote_options(Command& root, RemoteFlags& flags) {
  root.option("--variant", "NAME", &flags.variant, "of a folder with several: fp16 takes model.fp16.safetensors");
  root.option("--subfolder", "PATH", &flags.subfolder, "of the target");
  root.option(
      "--header", "NAME:VALUE",
      [&flags](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) add_headers(flags.options.http.headers, text);
      },
      "send this to the hosts of the targets; @FILE reads such lines from a file");
  root.flag("--netrc", &flags.options.http.netrc, "take names and passwords for hosts from ~/.netrc");
  root.option("--ca-file", "FILE", &flags.options.http.ca_file, "believe these certificates");
  root.flag("--plain-http", &flags.options.http.allow_plain, "allow http:// for other hosts than this one");
  root.flag("--offline", &flags.options.hub.offline, "of the Hub, only what its cache has");
}

RemoteOptions remote_options(const RemoteFlags& flags, const Host* host) {
  RemoteOptions options = flags.options;
  options.http.keep_going = [] { return interrupted() == 0; };
  if (host != nullptr) options.http.keep_going = [ask = host->keep_going] { return !ask || ask(); };
  return options;
}

}  // namespace ballast::cli
