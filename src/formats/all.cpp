#include "formats/all.hpp"

#include <algorithm>
#include <array>

#include "formats/gguf/format.hpp"
#include "formats/npy/format.hpp"
#include "formats/safetensors/format.hpp"
#include "formats/torch/format.hpp"

namespace ballast {
namespace {

constexpr std::array kAll = {
    &safetensors::kFormat, &kZipArchive,  &torch::kZip, &gguf::kFormat,
    &torch::kStream,       &npy::kFormat, &torch::kTar, &npy::kNpz,
};

}  // namespace

constinit const FileFormat kZipArchive = {
    .name = "",
    .bytes = "a zip archive",
    .begins = archive::looks_like_zip,
    .holds_files = true,
};

std::span<const FileFormat* const> all_formats() { return kAll; }

const FileFormat& format_in(const archive::Zip& zip) {
  const auto found = std::ranges::find_if(
      kAll, [&](const FileFormat* format) { return format->is_in != nullptr && format->is_in(zip); });
  return found == kAll.end() ? kZipArchive : **found;
}

const FileFormat* format_by_ending(std::string_view name) {
  for (const FileFormat* format : kAll) {
    const auto ends = [&](const Ending& ending) {
      const std::size_t stem = name.size() - std::min(name.size(), ending.text.size());
      return name.ends_with(ending.text) && stem != 0 && name[stem - 1] != '/';
    };
    if (std::ranges::any_of(format->endings, ends)) return format;
  }
  return nullptr;
}

std::string names_of_formats(bool (*wanted)(const FileFormat&), std::string_view last_word) {
  std::vector<std::string_view> names;
  for (const FileFormat* format : kAll) {
    if (!format->name.empty() && wanted(*format) && std::ranges::find(names, format->name) == names.end())
      names.push_back(format->name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " " + std::string(last_word) + " " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace ballast
