// What the documents say about ggml's block types is what the code can do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <ballast/dtype.hpp>

#include "kernels/ggml/decode.hpp"
#include "kernels/ggml/encode.hpp"
#include "support/files.hpp"

namespace ballast {
namespace {

using Names = std::set<std::string>;

std::string page(const char* path) { return test::read_whole_file(std::filesystem::path(BALLAST_SOURCE_DIR) / path); }

// Q8_1 is never in a file.
bool is_stored(const DTypeInfo& type) { return type.kind == DTypeKind::ggml && type.name != "Q8_1"; }

// Returns the words in backquotes of the first sentence that has this beginning; "`Q2_K` to `Q6_K`" includes the types
// between.
Names named_behind(const std::string& text, const std::string& beginning, const std::string& end) {
  const std::size_t first = text.find(beginning);
  if (first == std::string::npos) return {};
  std::string sentence = text.substr(first, text.find(end, first) - first);
  if (const auto range = sentence.find("`Q2_K` to `Q6_K`"); range != std::string::npos)
    sentence.insert(range, "`Q3_K Q4_K Q5_K`");
  Names names;
  for (std::size_t i = 0; (i = sentence.find('`', i)) != std::string::npos;) {
    const std::size_t close = sentence.find('`', i + 1);
    std::istringstream words(sentence.substr(i + 1, close - i - 1));
    for (std::string word; words >> word;) names.insert(word);
    i = close + 1;
  }
  return names;
}

TEST(GgmlDocuments, ListEveryTypeThatIsDecoded) {
  Names decoded;
  for (const DTypeInfo& type : all_dtypes()) {
    if (is_stored(type) && kernels::can_decode(type.dtype)) decoded.emplace(type.name);
  }
  EXPECT_EQ(named_behind(page("docs/formats/gguf.md"), "Every type that ggml still has is decoded:", ";"), decoded);
}

TEST(GgmlDocuments, NameEveryTypeThatNeedsImportance) {
  Names needing;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!is_stored(type)) continue;
    EXPECT_TRUE(kernels::can_encode(type.dtype)) << type.name;
    if (kernels::needs_importance(type.dtype)) needing.emplace(type.name);
  }
  EXPECT_EQ(named_behind(page("README.md"), "all are encoded (", " with importance only"), needing);
  EXPECT_EQ(named_behind(page("CHANGELOG.md"), "all encoded with its own bytes (", " with importance only"), needing);
  EXPECT_EQ(named_behind(page("docs/formats/gguf.md"), "All types are encoded,", " with importance only"), needing);
}

}  // namespace
}  // namespace ballast
