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
#include "core/text.hpp"

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

// The folder's own name, also if it was called "." or "model/". An address has no such other names.
std::string own_name(const std::string& folder) {
  std::error_code failed;
  const bool is_address = folder.find("://") != std::string::npos;
  const auto path = is_address ? std::filesystem::path(folder) : std::filesystem::canonical(folder, failed);
  const std::string whole = failed ? folder : path.string();
  const std::size_t end = whole.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const std::size_t slash = whole.find_last_of('/', end);
  return whole.substr(slash + 1, end - slash);
}

}  // namespace

ModelFolder::ModelFolder(std::string target, const OpenOptions& options)
    : files_(options.files), limits_(options.limits), folder_(std::move(target)) {
  is_folder_ = files_->list(folder_).has_value();
  is_somewhere_ = is_folder_ || (!folder_.empty() && files_->exists(folder_));
  const std::size_t slash = folder_.find_last_of('/');
  const std::string around = slash == std::string::npos ? "." : folder_.substr(0, slash);
  name_ = own_name(is_folder_ ? folder_ : around);
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

std::optional<std::string> ModelFolder::bytes(const std::string& file) const {
  if (!has(file)) return std::nullopt;
  const SourcePtr source = files_->open(path(file));
  const std::uint64_t size = source->size_bytes();
  const std::uint64_t most = std::min(most_bytes_of(file), limits_.max_index_bytes);
  if (size > most && file != kModelCard)
    throw Error(Errc::limit, fmt::format("has {} bytes; such a file of a model has at most {}", size, most))
        .in(path(file))
        .hint("no published model has such a file; fetch it again from where the model comes from");
  std::string bytes(static_cast<std::size_t>(std::min(size, most)), '\0');
  source->read(0, std::as_writable_bytes(std::span(bytes)));
  if (size > most) drop_half_character(bytes);
  return bytes;
}

std::optional<std::string> ModelFolder::text(const std::string& file) const {
  auto found = bytes(file);
  if (!found || file == kModelCard) return found;
  const std::size_t valid = valid_utf8_prefix(*found);
  if (valid != found->size()) throw Error(Errc::malformed, "the text is not UTF-8").in(path(file)).at_byte(valid);
  return found;
}

std::optional<Json> ModelFolder::json(const std::string& file) const {
  const auto found = bytes(file);
  if (!found) return std::nullopt;
  try {
    return Json::parse_python(*found);
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
