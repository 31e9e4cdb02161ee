// docs/merging.md says what the table of merging says.
#include <ballast/merge.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "support/shared_files.hpp"

namespace ballast {
namespace {

std::string code(std::string_view words) {
  std::istringstream in{std::string(words)};
  std::string result;
  for (std::string word; in >> word;) result += (result.empty() ? "`" : ", `") + word + "`";
  return result;
}

std::string table() {
  std::string text = "| type | prefix | parameters | merged as | tested by |\n|---|---|---|---|---|\n";
  for (const MergeRule& rule : merge_rules()) {
    if (!rule.why_not.empty()) continue;
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", rule.peft_type, rule.prefix, code(rule.parameters),
                        rule.formula, code(rule.vectors));
  }
  text += "\n| type | prefix | why it is not merged |\n|---|---|---|\n";
  for (const MergeRule& rule : merge_rules()) {
    if (!rule.why_not.empty())
      text += fmt::format("| {} | {} | {} |\n", rule.peft_type, code(rule.prefix), rule.why_not);
  }
  return text;
}

TEST(MergingDocument, HasTheTableOfTheCode) {
  const std::string page = test::read_whole_file(std::filesystem::path(BALLAST_SOURCE_DIR) / "docs/merging.md");
  EXPECT_NE(page.find(table()), std::string::npos) << "the table must read\n" << table();
}

TEST(MergingDocument, NamesEveryReferenceCaseThatThereIs) {
  SKIP_WITHOUT_SHARED("vectors/peft");
  std::set<std::string> named, there;
  for (const MergeRule& rule : merge_rules()) {
    std::istringstream in{std::string(rule.vectors)};
    for (std::string word; in >> word;) named.insert(word);
  }
  for (const auto& folder : std::filesystem::directory_iterator(test::shared_path("vectors/peft"))) {
    if (std::filesystem::exists(folder.path() / "merged.safetensors")) there.insert(folder.path().filename().string());
  }
  EXPECT_EQ(named, there);
}

}  // namespace
}  // namespace ballast
