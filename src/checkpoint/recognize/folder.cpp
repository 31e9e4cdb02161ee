#include "checkpoint/recognize/folder.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/shard_name.hpp"
#include "core/text.hpp"
#include "formats/all.hpp"

namespace ballast {
namespace {

// The files of one format and extension. A folder that has files of several families has one model in several formats.
struct Family {
  std::string_view what;  // "safetensors"
  Ending ending;
};

// The best family comes first.
std::vector<Family> all_families() {
  std::vector<Family> families;
  for (const FileFormat* format : all_formats()) {
    for (const Ending& ending : format->endings) families.push_back({format->name, ending});
  }
  return families;
}

// Files that trainers put beside the model.
constexpr std::array kNoModels = {"training_args.bin", "optimizer.bin",       "optimizer.pt",  "scheduler.bin",
                                  "scheduler.pt",      "random_states_0.pkl", "rng_state.pth", "scaler.pt"};

std::vector<std::string> ending_in(const std::vector<std::string>& names, std::string_view ending) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const std::string& name) {
    return name.ends_with(ending) && !name.starts_with('.') &&
           std::find(kNoModels.begin(), kNoModels.end(), name) == kNoModels.end();
  });
  return found;
}

std::vector<std::string> indexes_among(const std::vector<std::string>& names, const Family& family) {
  return ending_in(names, std::string(family.ending.text) + std::string(kIndexEnding));
}

bool has_family(const std::vector<std::string>& names, const Family& family) {
  return !ending_in(names, family.ending.text).empty() || !indexes_among(names, family).empty();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  constexpr std::size_t kShown = 32;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + quote(names[i]);
  return names.size() > kShown ? text + ", …" : text;
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

// Without an index: all shards of the only set, or else the only file.
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

// "model.fp16.safetensors", "model.fp16-00001-of-00002.safetensors", "model-00001-of-00002.fp16.safetensors" and
// "model.safetensors.index.fp16.json", by what they would be called without the variant.
std::map<std::string, std::string> of_variant(const std::vector<std::string>& names, const std::string& variant) {
  std::map<std::string, std::string> found;
  const std::string word = "." + variant;
  for (const std::string& name : names) {
    const std::size_t at = name.rfind(word);
    const bool is_word = at != std::string::npos && (name[at + word.size()] == '.' || name[at + word.size()] == '-');
    if (is_word) found.emplace(std::string(name).erase(at, word.size()), name);
  }
  if (found.empty())
    throw Error(Errc::not_found, "the folder has no files of the variant " + quote(variant))
        .hint(names.empty() ? std::string() : "it has " + joined(names));
  return found;
}

// The files of other families that cannot be the chosen one in another format, since they are called otherwise.
std::vector<std::string> other_models(const std::vector<std::string>& names, const std::string& chosen) {
  const auto stem = [](std::string_view name) { return name.substr(0, name.rfind('.')); };
  std::vector<std::string> others;
  for (const Family& family : all_families()) {
    for (std::string& name : ending_in(names, family.ending.text)) {
      if (stem(name) != stem(chosen)) others.push_back(std::move(name));
    }
  }
  std::ranges::sort(others);
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return others;
}

}  // namespace

bool has_checkpoint(const std::vector<std::string>& names) {
  return std::ranges::any_of(all_families(), [&](const Family& family) { return has_family(names, family); });
}

std::vector<std::string> choices_among(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto families = all_families();
  const auto family = std::ranges::find_if(families, [&](const Family& some) { return has_family(names, some); });
  if (family == families.end()) return {};
  if (auto indexes = indexes_among(names, *family); indexes.size() > 1) return indexes;
  const auto files = ending_in(names, family->ending.text);
  std::vector<std::string> found;
  for (const ShardSet& set : find_sets(files)) {
    if (!set.files.empty()) found.push_back(set.files.begin()->second);
  }
  for (const std::string& file : files) {
    if (!parse_shard_name(file)) found.push_back(file);
  }
  std::sort(found.begin(), found.end());
  return found;
}

FolderContents look_for_damage(const std::string& folder, std::vector<std::string> names, const Files& files_of,
                               const std::string& variant) try {
  std::sort(names.begin(), names.end());
  const auto real_names = variant.empty() ? std::map<std::string, std::string>() : of_variant(names, variant);
  if (!variant.empty()) {
    names.clear();
    for (const auto& [plain, real] : real_names) names.push_back(plain);
  }
  const auto families = all_families();
  const auto family = std::ranges::find_if(families, [&](const Family& some) { return has_family(names, some); });
  if (family == families.end()) {
    throw Error(Errc::not_found, "the folder has no checkpoint that goes by one of the usual names")
        .hint("give the file itself");
  }
  const auto indexes = indexes_among(names, *family);
  const auto files = ending_in(names, family->ending.text);
  const auto path = [&](const std::string& name) {
    return files_of.inside(folder, variant.empty() ? name : real_names.at(name));
  };
  const auto has = [](const std::vector<std::string>& in, std::string_view name) {
    return std::find(in.begin(), in.end(), name) != in.end();
  };

  FolderContents contents;
  const std::string usual_index = std::string(family->ending.usual_name) + std::string(kIndexEnding);
  const bool usual_file = has(files, family->ending.usual_name);
  const bool takes_file = usual_file && files_of.prefers_whole(folder);
  if (!takes_file && (has(indexes, usual_index) || indexes.size() == 1)) {
    const std::string index = has(indexes, usual_index) ? usual_index : indexes.front();
    const std::string alone = whole_of(index);
    contents.index = path(index);
    if (has(files, alone)) contents.notes.push_back({folder, "opened " + index + "; " + alone + " is beside it"});
    return contents;
  }
  if (!takes_file && indexes.size() > 1) {
    throw Error(Errc::invalid_argument, "the folder has several indexes: " + joined(indexes))
        .hint("open one of them by its name");
  }
  const auto chosen = usual_file ? std::vector<std::string>{std::string(family->ending.usual_name)}
                                 : choose(files, *family, contents.missing);
  for (const std::string& file : chosen) contents.files.push_back(path(file));
  if (const auto others = files.size() - chosen.size(); others != 0) {
    const std::string what =
        usual_file ? std::string(family->ending.usual_name) : std::to_string(chosen.size()) + " shards";
    contents.notes.push_back({folder, "opened " + what + "; " + std::to_string(others) + " other " +
                                          std::string(family->what) + " files are beside it"});
  }
  if (!usual_file && files.size() == 1) {
    if (const auto others = other_models(names, files.front()); !others.empty())
      contents.notes.push_back({folder, "opened " + files.front() + "; " + joined(others) +
                                            (others.size() == 1 ? " is" : " are") + " beside it"});
  }
  return contents;
} catch (Error& error) {
  throw error.in(folder);
}

FolderContents look_into(const std::string& folder, std::vector<std::string> names, const Files& files,
                         const std::string& variant) {
  FolderContents contents = look_for_damage(folder, std::move(names), files, variant);
  if (!contents.missing.empty())
    throw Error(Errc::not_found, contents.missing)
        .in(folder)
        .hint("fetch the missing ones, or open one file by its name");
  return contents;
}

}  // namespace ballast
