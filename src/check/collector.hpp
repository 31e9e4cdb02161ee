// FindingCollector: the findings of one target, at the levels of a policy.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/check.hpp>

namespace ballast {

class FindingCollector {
 public:
  // All of them outlive this object.
  FindingCollector(const std::string& target, const CheckPolicy& policy, std::vector<CheckFinding>& findings)
      : target_(target), policy_(policy), findings_(findings) {}

  // `where` is empty for the target itself. What the policy ignores is not added.
  void add(std::string_view rule, std::string where, std::string tensor, std::string what) {
    const CheckRule* found = find_check_rule(rule);
    const auto said = policy_.levels.find(rule);
    const CheckLevel level = said == policy_.levels.end() ? found->level : said->second;
    if (level != CheckLevel::ignore) add(found, level, std::move(where), std::move(tensor), std::move(what));
  }

  // The same for a target that could not be looked at: it does not pass, whatever the policy says.
  void add_failure(std::string_view rule, std::string where, std::string what) {
    add(find_check_rule(rule), CheckLevel::fail, std::move(where), {}, std::move(what));
  }

  // Whether this was said of a file, perhaps with other words around it.
  bool says(const std::string& where, std::string_view what) const {
    return std::ranges::any_of(findings_, [&](const CheckFinding& finding) {
      return finding.where == (where.empty() ? target_ : where) && finding.what.find(what) != std::string::npos;
    });
  }

  bool ignores(std::string_view rule) const {
    const auto said = policy_.levels.find(rule);
    return said != policy_.levels.end() && said->second == CheckLevel::ignore;
  }

 private:
  void add(const CheckRule* rule, CheckLevel level, std::string where, std::string tensor, std::string what) {
    findings_.push_back({rule, level, where.empty() ? target_ : std::move(where), std::move(tensor), std::move(what)});
  }

  const std::string& target_;
  const CheckPolicy& policy_;
  std::vector<CheckFinding>& findings_;
};

}  // namespace ballast
