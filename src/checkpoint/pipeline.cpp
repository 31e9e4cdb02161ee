#include "checkpoint/pipeline.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "checkpoint/recognize/folder.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "checkpoint/roots.hpp"
#include "core/json_parse.hpp"
#include "core/name_list.hpp"
#include "core/text.hpp"
#include "io/section.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

constexpr std::string_view kPipelineFile = "model_index.json", kSnapshots = "snapshots";
constexpr std::uint64_t kMostBytes = 1 << 20;  // a real one has a few hundred
constexpr std::size_t kMostParts = 256;

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The name of the class in ["diffusers", "UNet2DConditionModel"]; empty for [null, null] and for all else.
std::string_view class_of_part(const Json& value) {
  const bool is_pair = value.is_list() && value.list().size() == 2 && value.list()[1].is_text();
  return is_pair ? std::string_view(value.list()[1].text()) : std::string_view();
}

// Schedulers, tokenizers and the like have other files than config.json. If that is missing as well, perhaps with the
// whole folder, there is only the name of the class to go by.
bool is_model(const std::optional<std::vector<std::string>>& names, std::string_view class_name) {
  constexpr std::string_view kOthers[] = {"Scheduler", "Tokenizer", "Processor", "Extractor"};
  const auto is_called = [&](std::string_view word) { return class_name.find(word) != class_name.npos; };
  return (names && has(*names, "config.json")) || std::ranges::none_of(kOthers, is_called);
}

void find_parts(const Json& index, const std::string& folder, const Files& files, Pipeline& pipeline) {
  NameList without_weights;
  for (const auto& [name, value] : index.members()) {
    const std::string_view class_name = class_of_part(value);
    if (class_name.empty()) continue;
    if (!is_basename(name)) throw Error(Errc::unsafe, fmt::format("the part {} is no folder in it", quote(name)));
    if (pipeline.parts.size() == kMostParts) throw Error(Errc::limit, fmt::format("more than {} parts", kMostParts));
    const std::string path = files.inside(folder, name);
    const auto names = files.list(path);
    if (names && has_checkpoint(*names))
      pipeline.parts.push_back({name, std::string(class_name), path});
    else if (is_model(names, class_name))
      without_weights.add(name);
  }
  if (!without_weights.empty())
    pipeline.notes.push_back({folder, "parts without weights: " + without_weights.text(), Note::Kind::remark});
}

// diffusers takes the weights without the variant if a part has none of it.
OpenOptions options_for_part(const PipelinePart& part, OpenOptions options) {
  options.root.clear();
  if (options.variant.empty()) return options;
  const auto names = options.files->list(part.folder).value_or(std::vector<std::string>());
  const std::string word = "." + options.variant;
  const bool has_variant = std::ranges::any_of(names, [&](const std::string& name) {
    const std::size_t at = name.rfind(word);
    return at != name.npos && (name[at + word.size()] == '.' || name[at + word.size()] == '-');
  });
  if (!has_variant) options.variant.clear();
  return options;
}

void add_part(Checkpoint part, const std::string& name, Checkpoint& all) {
  if (all.files.empty()) all.format = part.format;
  all.files.insert(all.files.end(), part.files.begin(), part.files.end());
  all.roots.push_back({name, part.size()});
  part.roots.clear();
  const auto renamed = [&](std::string_view inner) { return name + "." + std::string(inner); };
  // What all files say, such as "format", is said once. Names of tensors that are one are names, too.
  for (const auto& [key, value] : std::exchange(part.metadata, {})) {
    if (part.contains(key) && part.contains(value)) {
      all.metadata.emplace(renamed(key), renamed(value));
      continue;
    }
    const auto [there, is_new] = all.metadata.try_emplace(key, value);
    if (!is_new && there->second != value) all.metadata.emplace(renamed(key), value);
  }
  absorb(all, std::move(part), renamed);
}

}  // namespace

std::optional<Pipeline> find_pipeline(const std::string& folder, const OpenOptions& options) {
  const auto names = options.files->list(folder);
  if (!names || !has(*names, kPipelineFile) || has_checkpoint(*names)) return std::nullopt;
  const std::string path = options.files->inside(folder, std::string(kPipelineFile));
  try {
    const Json index = parse_json(*io::read_text(*options.files->open(path), kMostBytes), JsonText::Numbers::python);
    if (!index.is_object()) throw Error(Errc::malformed, "the file is not a JSON object");
    Pipeline pipeline;
    const Json* name = index.find("_class_name");
    if (name != nullptr && name->is_text()) pipeline.class_name = name->text();
    find_parts(index, folder, *options.files, pipeline);
    return pipeline;
  } catch (Error& error) {
    throw error.in(path);
  }
}

Checkpoint open_pipeline(const std::string& folder, const Pipeline& pipeline, const OpenOptions& options,
                         const OpenPart& open_part) {
  if (pipeline.parts.empty())
    throw Error(Errc::not_found, "no part of the pipeline has weights")
        .in(folder)
        .hint("fetch the parts' folders, too");
  Checkpoint all;
  all.target = folder;
  all.notes = pipeline.notes;
  for (const PipelinePart& part : pipeline.parts) {
    const bool is_asked_for =
        options.root.empty() || options.root == part.name || options.root.starts_with(part.name + ".");
    if (is_asked_for) add_part(open_part(part.folder, options_for_part(part, options)), part.name, all);
  }
  all.shards = all.files.size();
  if (options.root.empty()) return all;
  for (const PipelinePart& part : pipeline.parts) {
    if (all.files.empty()) all.roots.push_back({part.name, 0});  // for the hint of what there is
  }
  return take_root(std::move(all), options.root);
}

std::vector<std::string> possible_snapshots(const std::string& folder, const Files& files) {
  const auto names = files.list(folder);
  if (!names || !has(*names, kSnapshots) || has_checkpoint(*names)) return {};
  const std::string snapshots = files.inside(folder, std::string(kSnapshots));
  auto commits = files.list(snapshots);
  // One that was fetched by its commit alone has no refs.
  if (!commits || commits->empty() || !(has(*names, "refs") || has(*names, "blobs"))) return {};
  const std::string main = files.inside(files.inside(folder, "refs"), "main");
  std::string commit(files.exists(main) ? io::read_text(*files.open(main), kMostBytes)->view() : std::string_view());
  commit.erase(std::ranges::find_if(commit, [](char c) { return c == '\n' || c == '\r' || c == ' '; }), commit.end());
  if (has(*commits, commit)) commits = {commit};
  std::ranges::sort(*commits);
  for (std::string& one : *commits) one = files.inside(snapshots, one);
  return *std::move(commits);
}

std::optional<std::string> find_snapshot(const std::string& folder, const Files& files) {
  const std::vector<std::string> possible = possible_snapshots(folder, files);
  if (possible.empty()) return std::nullopt;
  if (possible.size() == 1) return possible.front();
  throw Error(Errc::invalid_argument, "the repository has several snapshots, and none is of the branch main")
      .in(folder)
      .hint("open one of them, such as " + quote(possible.front()));
}

}  // namespace ballast
