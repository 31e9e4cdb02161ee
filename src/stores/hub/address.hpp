// HubAddress: a file, a folder or a whole repository of the Hugging Face Hub, by the spellings that people use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ballast::hub {

struct HubAddress {
  std::string repository;  // "org/name"
  std::string revision;    // a branch, a tag, a commit, "refs/pr/1"; empty for "main"
  std::string path;        // "" for the whole repository; never leads out of it

  const std::string& revision_or_main() const;
  std::string text() const;  // "hf://org/name@revision/path"
};

// hf://org/name[@revision][/path], and the addresses that a browser shows on the Hub's hosts and on that of `endpoint`:
// https://huggingface.co/org/name[/tree|blob|resolve|raw|blame/revision/path]. Nothing for any other target. Throws
// Errc::invalid_argument for an hf:// address that cannot be one, and Errc::unsupported for datasets and spaces.
std::optional<HubAddress> parse_address(std::string_view target, std::string_view endpoint);

// Whether "org/name" may be the name of a repository: what PEFT and transformers take for one.
bool is_repository_name(std::string_view text);

// Whether a path stays in its folder on every system: no "..", no empty component, no backslash, no control character.
bool is_inner_path(std::string_view path);

bool is_commit(std::string_view revision);  // 40 lower-case hexadecimal digits

// For a URL: what is no letter, digit or one of "-._~" becomes %XX; slashes stay only in a path.
std::string percent_encoded(std::string_view text, bool keeps_slashes);

}  // namespace ballast::hub
