// docs/merging.md has the table of types that merge() goes by, and says which cases test each.
#include <ballast/merge.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "peft/merge/reference_cases.hpp"
#include "support/files.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

std::string code(std::string_view words) {
  std::istringstream in{std::string(words)};
  std::string result;
  for (std::string word; in >> word;) result += (result.empty() ? "`" : ", `") + word + "`";
  return result;
}

std::string_view cases_of(std::string_view peft_type) {
  const auto* found = std::ranges::find(test::kReferenceCases, peft_type, &test::ReferenceCases::peft_type);
  return found == std::end(test::kReferenceCases) ? std::string_view() : found->cases;
}

std::string table() {
  std::string text = "| type | prefix | parameters | merged as | tested by |\n|---|---|---|---|---|\n";
  for (const MergeRule& rule : merge_rules()) {
    if (!rule.why_not.empty()) continue;
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", rule.peft_type, rule.prefix, code(rule.parameters),
                        rule.formula, code(cases_of(rule.peft_type)));
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
  std::set<std::string> named, there;
  for (const test::ReferenceCases& row : test::kReferenceCases) {
    std::istringstream in{std::string(row.cases)};
    for (std::string word; in >> word;) named.insert(word);
  }
  for (const auto& folder : std::filesystem::directory_iterator(test::vector_path("peft"))) {
    if (std::filesystem::exists(folder.path() / "merged.safetensors")) there.insert(folder.path().filename().string());
  }
  EXPECT_EQ(named, there);
}

}  // namespace
}  // namespace ballast
