#include "llamacpp/tokenizer/merges.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ballast::llamacpp {
namespace {

constexpr std::string_view kWhitespace = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
constexpr std::string_view kSpaceLetter = "Ġ";  // a space, in the letters of byte-level BPE

// A space separates the two parts, so a space in a part is written as its letter.
void append_part(std::string& merge, std::string_view part) {
  for (const char c : part) c == ' ' ? merge.append(kSpaceLetter) : merge.append(1, c);
}

// All merges as an array of a GGUF has them. Half a million strings would take three times the memory.
class MergeList {
 public:
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  void add(std::string_view merge) {
    const std::uint64_t length = merge.size();
    bytes_.append(reinterpret_cast<const char*>(&length), sizeof length).append(merge);
    ++count_;
  }
  std::uint64_t count() const noexcept { return count_; }
  // Without a copy. The key is a literal.
  MetadataEntry entry(std::string_view key) && {
    const auto owner = std::make_shared<const std::string>(std::move(bytes_));
    return {key, MetadataType::array, MetadataType::string, count_, std::as_bytes(std::span(*owner)), owner};
  }

 private:
  std::string bytes_;
  std::uint64_t count_ = 0;
};

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
void add_merges_in(std::string_view text, MergeList& merges) {
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_in(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_remark = is_first && !words.empty() && words[0].starts_with('#');
    is_first = false;
    if (words.size() == 2 && !is_remark) merges.add(std::string(words[0]).append(" ").append(words[1]));
  }
}

}  // namespace

MetadataEntry read_merges(const TokenizerFiles& files, std::string_view key) {
  MergeList found;
  const auto merges = files.tokenizer_json() ? files.tokenizer_json()->merges() : std::nullopt;
  if (merges && !merges->is_object()) {
    found.reserve(merges->text_size());  // pages that nothing is written to take no memory
    merges->each_item([&](const Json& entry) {
      if (!is_merge(entry))
        throw files.error(Errc::malformed, fmt::format("merge {} is not a pair of tokens", found.count()),
                          "tokenizer.json");
      found.add(merge_of(entry));
    });
  }
  if (found.count() == 0) {
    if (auto text = files.folder().text("merges.txt")) add_merges_in(with_plain_newlines(std::move(*text)), found);
  }
  return std::move(found).entry(key);
}

}  // namespace ballast::llamacpp
