#include "llamacpp/tokenizer/merges.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kWhitespace = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
constexpr std::string_view kSpaceLetter = "Ġ";  // a space, in the letters of byte-level BPE

// A space separates the two parts, so a space in a part is written as its letter.
void append_part(std::string& merge, std::string_view part) {
  for (const char c : part) c == ' ' ? merge.append(kSpaceLetter) : merge.append(1, c);
}

std::string merge_of(const Json& entry) {
  if (entry.is_text()) return entry.text();
  std::string merge;
  append_part(merge, entry.list()[0].text());
  merge += ' ';
  append_part(merge, entry.list()[1].text());
  return merge;
}

bool is_pair(std::string_view merge) {
  const std::size_t space = merge.find(' ');
  return space != merge.npos && space != 0 && space + 1 != merge.size() && merge.find(' ', space + 1) == merge.npos;
}

bool is_part(const Json& part) { return part.is_text() && !part.text().empty(); }

bool is_merge(const Json& entry) {
  if (entry.is_text()) return is_pair(entry.text());
  return entry.is_list() && entry.list().size() == 2 && std::ranges::all_of(entry.list(), is_part);
}

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kWhitespace), line.size()));
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(kWhitespace), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// A merge a line. A first line with # is a remark; lines that are not two words are left out.
std::vector<std::string> merges_in(std::string_view text) {
  std::vector<std::string> merges;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_in(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_remark = is_first && !words.empty() && words[0].starts_with('#');
    is_first = false;
    if (words.size() == 2 && !is_remark) merges.push_back(std::string(words[0]).append(" ").append(words[1]));
  }
  return merges;
}

}  // namespace

std::vector<std::string> read_merges(const TokenizerFiles& files) {
  const Json* model = files.part("model");
  const Json* merges = model ? model->find("merges") : nullptr;
  std::vector<std::string> found;
  if (merges && merges->is_list() && !merges->list().empty()) {
    found.reserve(merges->list().size());
    for (const Json& entry : merges->list()) {
      if (!is_merge(entry))
        throw files.error(Errc::malformed, fmt::format("merge {} is not a pair of tokens", found.size()),
                          "tokenizer.json");
      found.push_back(merge_of(entry));
    }
    return found;
  }
  auto text = files.folder().text("merges.txt");
  return text ? merges_in(with_plain_newlines(std::move(*text))) : found;
}

}  // namespace ballast::llamacpp
