#include <ballast/check.hpp>
#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/remote.hpp>
#include <ballast/text.hpp>

#include <algorithm>

#include "check/target.hpp"
#include "checkpoint/pipeline.hpp"
#include "checkpoint/recognize/folder.hpp"

namespace ballast {
namespace {

CheckOptions options_for_check(const std::string& target, const CheckOptions& given) {
  CheckOptions options = given;
  options.open = options_for(target, given.open);
  options.open.cache = Cache::ignore;
  return options;
}

std::vector<std::string> folders_in(const std::string& folder, const Files& files) {
  auto names = files.list(folder).value_or(std::vector<std::string>());
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::ranges::sort(names, natural_less);
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    std::string path = files.inside(folder, name);
    if (files.list(path)) folders.push_back(std::move(path));
  }
  return folders;
}

bool is_target(const std::string& folder, const OpenOptions& options) {
  const auto names = options.files->list(folder);
  return names && (has_checkpoint(*names) || find_pipeline(folder, options) ||
                   !possible_snapshots(folder, *options.files).empty());
}

// The folders in a folder that are checkpoints, or hold some: models/organisation/name.
void add_inner_folders(const std::string& folder, const OpenOptions& options, int depth,
                       std::vector<std::string>& found) {
  constexpr int kDeepest = 4;  // links may lead around in circles
  for (const std::string& inner : folders_in(folder, *options.files)) {
    if (is_target(inner, options))
      found.push_back(inner);
    else if (depth < kDeepest)
      add_inner_folders(inner, options, depth + 1, found);
  }
}

// What to check in a folder that is no checkpoint by itself; nothing in one that is, and in one that has none.
std::vector<std::string> inner_targets(const std::string& target, const OpenOptions& options) {
  const auto names = options.files->list(target);
  if (!names) return {};
  std::vector<std::string> found;
  if (!is_target(target, options)) {
    add_inner_folders(target, options, 1, found);
    return found;
  }
  try {
    static_cast<void>(open(target, options));
  } catch (const Error& error) {
    if (error.code() == Errc::invalid_argument) found = choices_in(target, options);
  }
  return found.size() > 1 ? found : std::vector<std::string>();
}

void check_into(const std::string& target, const CheckOptions& given, bool scans, CheckReport& report) {
  const CheckOptions options = options_for_check(target, given);
  const Files& files = *options.open.files;
  if (const auto snapshots = possible_snapshots(target, files); !snapshots.empty()) {
    for (const std::string& snapshot : snapshots) check_into(snapshot, given, scans, report);
    return;
  }
  const std::vector<std::string> inner = inner_targets(target, options.open);
  if (inner.empty()) return report.targets.push_back(check_checkpoint(target, options, scans));
  if (scans) report.targets.push_back(check_folder(target, inner.size(), options));
  for (const std::string& each : inner) check_into(each, given, false, report);
}

}  // namespace

std::uint64_t CheckedTarget::failures() const noexcept {
  return static_cast<std::uint64_t>(std::ranges::count(findings, CheckLevel::fail, &CheckFinding::level));
}

bool CheckReport::passes() const noexcept { return std::ranges::all_of(targets, &CheckedTarget::passes); }

CheckReport check(const std::vector<std::string>& targets, const CheckOptions& options) {
  CheckReport report;
  for (const std::string& target : targets) {
    try {
      check_into(target, options, true, report);
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled) throw;
      report.targets.push_back(unchecked(target, error, options));
    }
  }
  return report;
}

}  // namespace ballast
