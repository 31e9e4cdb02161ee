// check: whether checkpoints are fit to ship: safe, whole, sound, and what their config.json says.
//
// check() scans each target as scan() does, looks at its structure as verify() does, reads every value once, and
// compares the weights with config.json where the architecture is known. It may be called from several threads at once.
// The report owns everything in it, except what kCheckRules has.
//
// Example:
//   const CheckReport report = check({"model/", "extra.pt"});
//   for (const CheckedTarget& target : report.targets) {
//     for (const CheckFinding& finding : target.findings) std::cout << finding.rule->id << ": " << finding.what <<
//     "\n";
//   }
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/dtype.hpp>
#include <ballast/open_options.hpp>
#include <ballast/progress.hpp>

namespace ballast {

enum class CheckLevel : std::uint8_t { ignore, warn, fail };

struct CheckRule {
  std::string_view id;
  CheckLevel level;  // unless a policy says otherwise
  std::string_view what;
};

inline constexpr std::array kCheckRules = {
    CheckRule{"unsafe", CheckLevel::fail, "a pickle uses what runs code, writes files or reaches the network"},
    CheckRule{"unknown-code", CheckLevel::warn, "a pickle or a script holds what Ballast does not know"},
    CheckRule{"malformed", CheckLevel::fail, "the file, its index or its shards are not as they should be"},
    CheckRule{"missing", CheckLevel::fail, "tensors are missing that the architecture or an index has"},
    CheckRule{"contradiction", CheckLevel::fail, "weights contradict config.json"},
    CheckRule{"left-over", CheckLevel::warn, "tensors that the architecture does not have"},
    CheckRule{"nan", CheckLevel::fail, "values that are not numbers"},
    CheckRule{"infinity", CheckLevel::fail, "values that are infinite"},
    CheckRule{"zeros", CheckLevel::warn, "tensors whose values are all zero"},
    CheckRule{"constant_rows", CheckLevel::warn, "rows whose values are all equal"},
    CheckRule{"outlier", CheckLevel::warn, "a standard deviation out of line with those of its siblings"},
    CheckRule{"dtype", CheckLevel::warn, "weights of a dtype that the policy does not have; of F64 without a policy"},
    CheckRule{"duplicate", CheckLevel::warn, "tensors with the same bytes that are stored twice"},
    CheckRule{"format", CheckLevel::warn, "a safetensors file does not say its \"format\", which transformers needs"},
    CheckRule{"licence", CheckLevel::warn, "a model's folder says nothing about its licence"},
    CheckRule{"configuration", CheckLevel::warn, "a small file beside the weights cannot be read"},
    CheckRule{"not-checked", CheckLevel::warn, "something that was not looked at, or had nothing to be compared with"},
};

// Null if there is no such rule.
const CheckRule* find_check_rule(std::string_view id) noexcept;

struct CheckFinding {
  const CheckRule* rule = nullptr;
  CheckLevel level = CheckLevel::warn;  // warn or fail
  std::string where;                    // a file or a folder
  std::string tensor;                   // empty if it is not about one
  std::string what;
};

struct CheckedTarget {
  std::string target;
  bool is_opened = false;         // false also for a folder with several checkpoints
  std::uint64_t checkpoints = 0;  // in such a folder: the targets behind this one
  std::uint64_t tensors = 0, bytes = 0;
  std::vector<CheckFinding> findings;  // those that fail come first

  std::uint64_t failures() const noexcept;
  bool passes() const noexcept { return failures() == 0; }
};

struct CheckReport {
  std::vector<CheckedTarget> targets;
  bool passes() const noexcept;
};

// What fails, what is trusted, and which dtypes weights may have.
struct CheckPolicy {
  std::map<std::string, CheckLevel, std::less<>> levels{};  // by the rule's id
  std::vector<std::string> trusted{};                       // as ScanOptions::trusted
  std::vector<DType> dtypes{};                              // empty: any but F64
};

// A line of a policy is `fail RULE`, `warn RULE` or `ignore RULE` (`all` for every rule), `dtypes A B …`, or a pattern
// over names that scan trusts, which has a "." or a "*"; # begins a comment. A later line of dtypes replaces an earlier
// one. Errc::invalid_argument with the line for anything else.
void read_check_policy(std::string_view text, CheckPolicy& policy);

struct CheckOptions {
  OpenOptions open{};
  CheckPolicy policy{};
  unsigned threads = 0;
  Progress progress{};
};

// A folder with several checkpoints, or with folders that have them, is scanned as a whole, and then each checkpoint is
// checked. A target that cannot be opened, or is not there, has a finding that fails, whatever the policy says.
CheckReport check(const std::vector<std::string>& targets, const CheckOptions& options = {});

}  // namespace ballast
