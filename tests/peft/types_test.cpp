// The one table of PEFT's types has no contradictions.
#include <gtest/gtest.h>

#include <ballast/merge.hpp>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "peft/types.hpp"

namespace ballast::peft {
namespace {

std::vector<std::string> words_in(std::string_view words) {
  std::istringstream in{std::string(words)};
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

TEST(PeftTypes, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const PeftType& type : peft_types()) EXPECT_TRUE(names.insert(type.name).second) << type.name;
  EXPECT_EQ(names.size(), 44u);
}

TEST(PeftTypes, HaveARuleOrTheReasonForHavingNone) {
  for (const PeftType& type : peft_types()) {
    EXPECT_NE(type.formula.empty(), type.why_not.empty()) << type.name;
    const bool has_rule = type.merge != nullptr || type.name == "TRAINABLE_TOKENS";
    EXPECT_EQ(has_rule, type.why_not.empty()) << type.name;
    EXPECT_EQ(type.merged_parameters().empty(), type.formula.empty()) << type.name;
  }
}

TEST(PeftTypes, SpeakOnlyOfTheirOwnParameters) {
  for (const PeftType& type : peft_types()) {
    for (const std::string& word : words_in(type.merged_parameters()))
      EXPECT_TRUE(is_parameter(type, word.substr(0, word.find('.')))) << word;
    for (const auto words : {type.optional, type.training}) {
      for (const std::string& word : words_in(words)) EXPECT_TRUE(is_parameter(type, word)) << word;
    }
    for (const std::string& word : words_in(type.layer)) {
      const bool has_own_name = type.kind == Kind::prompt || type.name == "OSF";  // OSF has three that begin with "_"
      EXPECT_TRUE(has_own_name || word.starts_with(type.prefix)) << word;
    }
    EXPECT_EQ(type.optional.empty(), type.saved_if.empty()) << type.name;
  }
}

TEST(PeftTypes, AreTheRowsOfTheMergingTable) {
  ASSERT_EQ(merge_rules().size(), peft_types().size());
  for (std::size_t i = 0; i < merge_rules().size(); ++i) {
    EXPECT_EQ(merge_rules()[i].peft_type, peft_types()[i].name);
    EXPECT_EQ(merge_rules()[i].parameters, peft_types()[i].merged_parameters());
  }
}

}  // namespace
}  // namespace ballast::peft
