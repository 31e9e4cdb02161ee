// Options that several verbs share, each described once.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "session.hpp"

namespace ballast::cli {

// The options of the top level; CLI11 lets every verb fall through to them.
void add_common_options(CLI::App& app, Session& session);

CLI::Option* add_target(CLI::App& verb, std::string& target);
void add_json_option(CLI::App& verb, Session& session);
void add_selection_options(CLI::App& verb, Session& session);
void add_force_option(CLI::App& verb, Session& session);
void add_sync_option(CLI::App& verb, Session& session);

// An option or positional that may be given many times, one value each.
CLI::Option* add_repeated_option(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                                 const std::string& description);
CLI::Option* add_repeated_positional(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                                     const std::string& description);

// "KEY=VALUE" taken apart at the first '='. Throws Errc::invalid_argument.
std::pair<std::string, std::string> split_assignment(const std::string& text, std::string_view example);

// "5GB", "64MiB". Throws Errc::invalid_argument naming the option.
std::uint64_t bytes_argument(std::string_view option, const std::string& text);

// "BF16", in any case. Throws Errc::invalid_argument naming the option.
DType dtype_argument(std::string_view option, std::string text);

// Every field of Limits with its default, for --limits.
std::string limits_text();

}  // namespace ballast::cli
