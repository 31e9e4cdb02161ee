// Options that several verbs share, each described once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.hpp"
#include "session.hpp"

namespace ballast::cli {

// The options of the top level, which may stand behind every verb.
void add_common_options(Command& root, Session& session);

void add_target(Command& verb, std::string& target);
void add_json_option(Command& verb, Session& session);
void add_selection_options(Command& verb, Session& session);
void add_force_option(Command& verb, Session& session);
void add_strict_option(Command& verb, Session& session);
void add_sync_option(Command& verb, Session& session);

// "KEY=VALUE" taken apart at the first '='. Throws Errc::invalid_argument.
std::pair<std::string, std::string> split_assignment(const std::string& text, std::string_view example);

// "KEY=@FILE" with the text of the file in its place; "KEY=@@TEXT" is a text that begins with one @. Another program
// that runs a verb has texts of its own: there an @ means nothing.
std::string with_text_of_file(const Session& session, const std::string& assignment);

// "5GB", "64MiB"; "512K" is 512KiB, as du and find have it. Throws Errc::invalid_argument naming the option.
std::uint64_t bytes_argument(std::string_view option, const std::string& text);

// "BF16", "bfloat16", "torch.half": see parse_dtype. Throws Errc::invalid_argument naming the option.
DType dtype_argument(std::string_view option, const std::string& text);
std::vector<std::string> cast_targets();  // the floating dtypes that --dtype accepts

// Every field of Limits, for --limit and for the limits of the Python module.
struct LimitField {
  std::string_view name;
  std::uint64_t Limits::*field;
  std::string_view meaning;
};
std::span<const LimitField> limit_fields();

// All of them with their defaults, for --limits.
std::string limits_text(const Terminal& terminal);

}  // namespace ballast::cli
