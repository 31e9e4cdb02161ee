#include "llamacpp/model_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <ballast/error.hpp>

#include "checkpoint/links.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "core/json_parse.hpp"
#include "core/text.hpp"
#include "stores/hub/address.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kModelCard = "README.md";
constexpr std::uint64_t kMega = 1'000'000;

// No file of a real model comes near these. A document takes many times the memory of its text.
struct FileCap {
  std::string_view ending;  // of the file's name
  std::uint64_t most_bytes;
};
constexpr FileCap kFileCaps[] = {
    {"tokenizer.json", 256 * kMega},
    {"vocab.json", 256 * kMega},
    {"vocab.txt", 256 * kMega},
    {"merges.txt", 256 * kMega},
    {".model", 256 * kMega},
    {"tokenizer_config.json", 64 * kMega},  // a hundred thousand added tokens are 19 MB
    {"added_tokens.json", 64 * kMega},
    {kModelCard, 4 * kMega},
    {".jinja", 4 * kMega},
    {"chat_template.json", 4 * kMega},
    {"", 16 * kMega},  // config.json and all others
};

std::uint64_t most_bytes_of(std::string_view file) {
  return std::ranges::find_if(kFileCaps, [&](const FileCap& cap) { return file.ends_with(cap.ending); })->most_bytes;
}

// Without the part of a character that a cut may have left at the end.
void drop_half_character(std::string& text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (text.size() - valid < 4) text.resize(valid);
}

std::string last_component(std::string_view path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == path.npos) return {};
  const std::size_t slash = path.find_last_of('/', end);
  return std::string(path.substr(slash + 1, end - slash));
}

// The name of a repository whose snapshot in the Hub's cache this is: models--ORG--NAME/snapshots/COMMIT.
std::string name_of_snapshot(const std::filesystem::path& folder) {
  constexpr std::string_view kModels = "models--", kBetween = "--";
  const std::string repository = folder.parent_path().parent_path().filename().string();
  const std::size_t name = repository.rfind(kBetween);
  const bool is_snapshot = folder.parent_path().filename() == "snapshots" && repository.starts_with(kModels);
  return is_snapshot ? repository.substr(name + kBetween.size()) : std::string();
}

// The folder's own name, also if it was called "." or "model/".
std::string own_name(const std::string& folder) {
  if (const auto address = hub::parse_address(folder, {}))
    return last_component(address->path.empty() ? address->repository : address->path);
  if (folder.find("://") != folder.npos) return last_component(folder);
  std::error_code failed;
  const auto path = std::filesystem::canonical(folder, failed);
  if (failed) return last_component(folder);
  const std::string repository = name_of_snapshot(path);
  return repository.empty() ? last_component(path.string()) : repository;
}

}  // namespace

ModelFolder::ModelFolder(std::string target, const OpenOptions& options)
    : files_(options.files), limits_(options.limits), folder_(std::move(target)) {
  is_folder_ = files_->list(folder_).has_value();
  is_somewhere_ = is_folder_ || (!folder_.empty() && files_->exists(folder_));
  // The Hub's files, whose addresses have many spellings, are called in one way.
  const std::string inner = is_folder_ ? files_->inside(folder_, "x") : files_->beside(folder_, "x");
  const std::size_t slash = inner.find_last_of('/');
  name_ = own_name(slash == std::string::npos ? "." : inner.substr(0, slash));
}

std::string ModelFolder::path(const std::string& file) const {
  std::string path = folder_;
  bool is_first = true;
  for (std::size_t begin = 0; begin <= file.size();) {
    const std::size_t end = std::min(file.find('/', begin), file.size());
    const std::string part = file.substr(begin, end - begin);
    if (!is_basename(part))
      throw Error(Errc::unsafe, fmt::format("the file {} is not in the model's folder", quote(file))).in(folder_);
    path = is_first && !is_folder_ ? files_->beside(path, part) : files_->inside(path, part);
    is_first = false;
    begin = end + 1;
  }
  return path;
}

bool ModelFolder::leads_out(const std::string& file) const {
  for (std::size_t end = 0; end != file.npos;) {
    end = file.find('/', end == 0 ? 0 : end + 1);
    const std::string part = path(file.substr(0, end));
    if (ballast::leads_out(*files_, part)) return true;
  }
  return false;
}

bool ModelFolder::has(const std::string& file) const { return is_somewhere_ && files_->exists(path(file)); }

std::optional<ModelFolder::Found> ModelFolder::find(const std::string& file) const {
  if (!has(file)) return std::nullopt;
  SourcePtr source = files_->open(path(file));
  const std::uint64_t size = source->size_bytes();
  const std::uint64_t most = std::min(most_bytes_of(file), limits_.max_index_bytes);
  if (size > most && file != kModelCard)
    throw Error(Errc::limit, fmt::format("has {} bytes; such a file of a model has at most {}", size, most))
        .in(path(file))
        .hint("no published model has such a file; fetch it again from where the model comes from");
  return Found{std::move(source), static_cast<std::size_t>(std::min(size, most)), size > most};
}

std::optional<std::string> ModelFolder::bytes(const std::string& file) const {
  const auto found = find(file);
  if (!found) return std::nullopt;
  std::string bytes(found->size, '\0');
  found->source->read(0, std::as_writable_bytes(std::span(bytes)));
  if (found->is_cut) drop_half_character(bytes);
  return bytes;
}

std::optional<PaddedText> ModelFolder::padded(const std::string& file) const {
  const auto found = find(file);
  if (!found) return std::nullopt;
  PaddedText text(found->size);
  found->source->read(0, text.bytes());
  return text;
}

std::optional<std::string> ModelFolder::text(const std::string& file) const {
  auto found = bytes(file);
  if (!found || file == kModelCard) return found;
  const std::size_t valid = valid_utf8_prefix(*found);
  if (valid != found->size()) throw Error(Errc::malformed, "the text is not UTF-8").in(path(file)).at_byte(valid);
  return found;
}

std::optional<Json> ModelFolder::json(const std::string& file) const {
  const auto found = padded(file);
  if (!found) return std::nullopt;
  try {
    return parse_json(*found, JsonText::Numbers::python);
  } catch (Error& error) {
    throw error.in(path(file));
  }
}

std::vector<std::string> ModelFolder::list(const std::string& folder) const {
  if (!is_somewhere_) return {};
  auto names = files_->list(path(folder)).value_or(std::vector<std::string>());
  std::ranges::sort(names);
  return names;
}

}  // namespace ballast::llamacpp
