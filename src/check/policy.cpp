#include <ballast/check.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast {
namespace {

std::vector<std::string_view> words_of_line(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r,";
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(kSpace), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<CheckLevel> level_called(std::string_view word) {
  if (word == "fail") return CheckLevel::fail;
  if (word == "warn") return CheckLevel::warn;
  if (word == "ignore") return CheckLevel::ignore;
  return std::nullopt;
}

[[noreturn]] void refuse_line(std::size_t number, const std::string& why) {
  std::string rules;
  for (const CheckRule& rule : kCheckRules) rules += (rules.empty() ? "" : ", ") + std::string(rule.id);
  throw Error(Errc::invalid_argument, fmt::format("line {} of the policy: {}", number, why))
      .hint(
          "a line is \"fail RULE\", \"warn RULE\", \"ignore RULE\", \"dtypes BF16 F32\", or a pattern of names to "
          "trust, such as mymodule.*; the rules are " +
          rules);
}

void set_levels(const std::vector<std::string_view>& words, CheckLevel level, std::size_t number, CheckPolicy& policy) {
  if (words.size() < 2) refuse_line(number, "which rule?");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool is_all = words[i] == "all";
    if (!is_all && find_check_rule(words[i]) == nullptr)
      refuse_line(number, fmt::format("there is no rule {}", quote(words[i])));
    for (const CheckRule& rule : kCheckRules) {
      if (is_all || rule.id == words[i]) policy.levels.insert_or_assign(std::string(rule.id), level);
    }
  }
}

}  // namespace

const CheckRule* find_check_rule(std::string_view id) noexcept {
  const auto found = std::ranges::find(kCheckRules, id, &CheckRule::id);
  return found == kCheckRules.end() ? nullptr : &*found;
}

void read_check_policy(std::string_view text, CheckPolicy& policy) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    if (const auto level = level_called(words[0])) {
      set_levels(words, *level, number, policy);
    } else if (words[0] == "dtypes") {
      if (words.size() < 2) refuse_line(number, "which dtypes?");
      policy.dtypes.clear();
      for (std::size_t i = 1; i < words.size(); ++i) {
        const auto dtype = parse_dtype(words[i]);
        if (!dtype) refuse_line(number, fmt::format("there is no dtype {}", quote(words[i])));
        policy.dtypes.push_back(*dtype);
      }
    } else if (words.size() == 1 && words[0].find_first_of(".*") != std::string_view::npos) {
      policy.trusted.emplace_back(words[0]);
    } else {
      refuse_line(number, fmt::format("{} is no word of a policy", quote(words[0])));
    }
  }
}

}  // namespace ballast
