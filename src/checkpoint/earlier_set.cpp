#include "checkpoint/earlier_set.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "checkpoint/recognize/shard_index.hpp"
#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "io/section.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

// "DIR/model.safetensors" of the set that the plan writes, or of the single file.
fs::path path_of_whole(const SavePlan& plan) {
  return whole_of(plan.rival.ends_with(kIndexEnding) ? plan.rival : plan.files.back().path);
}

std::vector<std::string> named_by(const std::string& index, const Limits& limits) {
  try {
    return parse_shard_index(io::read_text_file(index, limits), limits).files;
  } catch (const Error&) {
    return {};  // it is not there, or cannot be relied on
  }
}

// Never true for a folder; a link is not followed.
bool is_file_or_link(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status found = fs::symlink_status(path, ignored);
  return fs::is_regular_file(found) || fs::is_symlink(found);
}

std::vector<std::string> shards_beside(const fs::path& whole) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    std::string name = i->path().filename().string();
    const auto shard = parse_usual_shard_name(name);
    if (shard && shard->whole() == whole.filename()) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string some(std::size_t count, const std::string& example) {
  const std::string name = quote(fs::path(example).filename().string());
  return count == 1 ? "a shard of an earlier set, " + name
                    : fmt::format("{} shards of an earlier set, such as {}", count, name);
}

}  // namespace

EarlierSet find_earlier_set(const SavePlan& plan, const Limits& limits) {
  if (plan.files.empty()) return {};
  const fs::path whole = path_of_whole(plan);
  std::set<std::string> ours;
  for (const SavePlan::File& file : plan.files) ours.insert(fs::path(file.path).filename().string());
  EarlierSet earlier;
  earlier.index = whole.string() + std::string(kIndexEnding);
  const std::vector<std::string> named = named_by(earlier.index, limits);
  for (const std::string& name : shards_beside(whole)) {
    if (ours.contains(name) || !is_file_or_link(whole.parent_path() / name)) continue;
    const bool is_named = std::binary_search(named.begin(), named.end(), name);
    (is_named ? earlier.shards : earlier.others).push_back((whole.parent_path() / name).string());
  }
  return earlier;
}

std::vector<Note> foretold(const EarlierSet& earlier) {
  if (earlier.shards.empty()) return {};
  return {{"", "would remove " + some(earlier.shards.size(), earlier.shards.front()), Note::Kind::remark}};
}

void remove(const EarlierSet& earlier, std::vector<Note>& notes) {
  std::size_t removed = 0;
  for (const std::string& shard : earlier.shards) {
    std::error_code error;
    if (is_file_or_link(shard) && fs::remove(shard, error)) ++removed;
    if (error) notes.push_back({shard, "is a shard of an earlier set, and cannot be removed: " + error.message()});
  }
  if (removed != 0) notes.push_back({"", "removed " + some(removed, earlier.shards.front()), Note::Kind::remark});
  if (earlier.others.empty()) return;
  const std::string what = some(earlier.others.size(), earlier.others.front());
  notes.push_back({"", "left alone, because no index names it: " + what, Note::Kind::remark});
}

}  // namespace ballast
