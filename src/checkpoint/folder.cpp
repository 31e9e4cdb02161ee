#include "checkpoint/folder.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "core/text.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors";
constexpr std::string_view kIndexEnding = ".safetensors.index.json";

// "model-00002-of-00005.safetensors"
struct ShardName {
  std::string stem;
  std::uint64_t number, count;
};

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<ShardName> parse_shard_name(std::string_view file) {
  file.remove_suffix(kEnding.size());
  const auto of = file.rfind("-of-");
  if (of == std::string_view::npos) return std::nullopt;
  const auto dash = file.rfind('-', of == 0 ? 0 : of - 1);
  if (dash == std::string_view::npos || dash >= of) return std::nullopt;
  std::string_view number_text = file.substr(dash + 1, of - dash - 1), count_text = file.substr(of + 4);
  const auto number = take_number(number_text), count = take_number(count_text);
  if (!number || !count || !number_text.empty() || !count_text.empty()) return std::nullopt;
  return ShardName{std::string(file.substr(0, dash)), *number, *count};
}

std::vector<std::string> list(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    names.push_back(i->path().filename().string());
  }
  if (error) throw Error(Errc::io, "cannot list the folder: " + error.message()).in(folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ending_in(const std::vector<std::string>& names, std::string_view ending) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string& name) { return name.ends_with(ending) && !name.starts_with('.'); });
  return found;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) text += (i ? ", " : "") + quote(names[i]);
  return names.size() > 4 ? text + ", …" : text;
}

// Shards without an index must be all there.
void check_complete(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> sets;
  for (const std::string& file : files) {
    if (const auto shard = parse_shard_name(file)) ++sets[{shard->stem, shard->count}];
  }
  for (const auto& [set, found] : sets) {
    if (found == set.second) continue;
    throw Error(Errc::not_found, "the folder has " + std::to_string(found) + " of the " + std::to_string(set.second) +
                                     " shards of " + quote(set.first))
        .hint("fetch the missing ones, or open one file by its name");
  }
}

}  // namespace

FolderContents look_into(const std::string& folder) try {
  const auto names = list(folder);
  const auto indexes = ending_in(names, kIndexEnding);
  const auto files = ending_in(names, kEnding);
  const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const auto has = [](const std::vector<std::string>& in, std::string_view name) {
    return std::find(in.begin(), in.end(), name) != in.end();
  };

  FolderContents contents;
  const bool usual_index = has(indexes, "model.safetensors.index.json");
  if (usual_index || indexes.size() == 1) {
    contents.index = path(usual_index ? "model.safetensors.index.json" : indexes.front());
    return contents;
  }
  if (indexes.size() > 1) {
    throw Error(Errc::mismatch, "the folder has several indexes: " + joined(indexes)).hint("open one of them by its name");
  }
  if (has(files, "model.safetensors")) {
    contents.files.push_back(path("model.safetensors"));
    if (files.size() > 1) {
      contents.notes.push_back({folder, "opened model.safetensors; " + std::to_string(files.size() - 1) + " other safetensors files are beside it"});
    }
    return contents;
  }
  if (files.empty()) {
    throw Error(Errc::not_found, "the folder has no safetensors file").hint("give the file itself");
  }
  check_complete(files);
  for (const std::string& file : files) contents.files.push_back(path(file));
  return contents;
} catch (Error& error) {
  throw error.in(folder);
}

}  // namespace ballast
