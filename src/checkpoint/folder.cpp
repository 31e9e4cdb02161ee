#include "checkpoint/folder.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "core/text.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

// What a folder may hold, the best first. A folder that has files of several kinds has one model in several formats.
struct Family {
  std::string_view what;
  std::string_view ending;
  std::string_view index_ending;
  std::string_view usual_name;
};
constexpr std::array kFamilies = {
    Family{"safetensors", ".safetensors", ".safetensors.index.json", "model.safetensors"},
    Family{"PyTorch", ".bin", ".bin.index.json", "pytorch_model.bin"},
    Family{"PyTorch", ".pt", ".pt.index.json", "model.pt"},
    Family{"PyTorch", ".pth", ".pth.index.json", "model.pth"},
    Family{"PyTorch", ".ckpt", ".ckpt.index.json", "model.ckpt"},
    Family{"GGUF", ".gguf", ".gguf.index.json", "model.gguf"},
};

// What trainers put beside the model.
constexpr std::array kNoModels = {"training_args.bin", "optimizer.bin",       "optimizer.pt",  "scheduler.bin",
                                  "scheduler.pt",      "random_states_0.pkl", "rng_state.pth", "scaler.pt"};

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
  file.remove_suffix(file.size() - file.rfind('.'));
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
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const std::string& name) {
    return name.ends_with(ending) && !name.starts_with('.') &&
           std::find(kNoModels.begin(), kNoModels.end(), name) == kNoModels.end();
  });
  return found;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) text += (i ? ", " : "") + quote(names[i]);
  return names.size() > 4 ? text + ", …" : text;
}

struct ShardSet {
  std::string stem;
  std::uint64_t count = 0;
  std::map<std::uint64_t, std::string> files;  // by number
};

std::vector<ShardSet> find_sets(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, std::uint64_t>, ShardSet> sets;
  for (const std::string& file : files) {
    const auto shard = parse_shard_name(file);
    if (!shard) continue;
    ShardSet& set =
        sets.try_emplace({shard->stem, shard->count}, ShardSet{shard->stem, shard->count, {}}).first->second;
    if (shard->number >= 1 && shard->number <= shard->count) set.files.emplace(shard->number, file);
  }
  std::vector<ShardSet> found;
  for (auto& [key, set] : sets) found.push_back(std::move(set));
  return found;
}

// Without an index: the shards of the one set that there is, all of them, or else the only file.
std::vector<std::string> choose(const std::vector<std::string>& files, const Family& family, std::string& missing) {
  const auto sets = find_sets(files);
  if (sets.size() > 1) {
    std::vector<std::string> stems;
    for (const ShardSet& set : sets) stems.push_back(set.stem);
    throw Error(Errc::invalid_argument, "the folder has several sets of shards: " + joined(stems))
        .hint("open one file by its name");
  }
  if (sets.empty() && files.size() > 1) {
    throw Error(Errc::invalid_argument,
                "the folder has several " + std::string(family.what) + " files: " + joined(files))
        .hint("open one of them by its name");
  }
  if (sets.empty()) return files;
  const ShardSet& set = sets.front();
  if (set.files.size() != set.count) {
    missing = "the folder has " + std::to_string(set.files.size()) + " of the " + std::to_string(set.count) +
              " shards of " + quote(set.stem);
  }
  std::vector<std::string> shards;
  for (const auto& [number, file] : set.files) shards.push_back(file);
  return shards;
}

}  // namespace

FolderContents look_for_damage(const std::string& folder) try {
  const auto names = list(folder);
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& candidate) {
    return !ending_in(names, candidate.ending).empty() || !ending_in(names, candidate.index_ending).empty();
  });
  if (family == kFamilies.end()) {
    throw Error(Errc::not_found, "the folder has no checkpoint that goes by one of the usual names")
        .hint("give the file itself");
  }
  const auto indexes = ending_in(names, family->index_ending);
  const auto files = ending_in(names, family->ending);
  const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const auto has = [](const std::vector<std::string>& in, std::string_view name) {
    return std::find(in.begin(), in.end(), name) != in.end();
  };

  FolderContents contents;
  const std::string usual_index = std::string(family->usual_name) + ".index.json";
  if (has(indexes, usual_index) || indexes.size() == 1) {
    const std::string index = has(indexes, usual_index) ? usual_index : indexes.front();
    const std::string alone = index.substr(0, index.size() - std::string_view(".index.json").size());
    contents.index = path(index);
    if (has(files, alone)) contents.notes.push_back({folder, "opened " + index + "; " + alone + " is beside it"});
    return contents;
  }
  if (indexes.size() > 1) {
    throw Error(Errc::invalid_argument, "the folder has several indexes: " + joined(indexes))
        .hint("open one of them by its name");
  }
  const bool usual_file = has(files, family->usual_name);
  const auto chosen =
      usual_file ? std::vector<std::string>{std::string(family->usual_name)} : choose(files, *family, contents.missing);
  for (const std::string& file : chosen) contents.files.push_back(path(file));
  if (const auto others = files.size() - chosen.size(); others != 0) {
    const std::string what = usual_file ? std::string(family->usual_name) : std::to_string(chosen.size()) + " shards";
    contents.notes.push_back({folder, "opened " + what + "; " + std::to_string(others) + " other " +
                                          std::string(family->what) + " files are beside it"});
  }
  return contents;
} catch (Error& error) {
  throw error.in(folder);
}

FolderContents look_into(const std::string& folder) {
  FolderContents contents = look_for_damage(folder);
  if (!contents.missing.empty())
    throw Error(Errc::not_found, contents.missing)
        .in(folder)
        .hint("fetch the missing ones, or open one file by its name");
  return contents;
}

}  // namespace ballast
