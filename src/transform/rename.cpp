#include <ballast/error.hpp>
#include <ballast/transform.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "transform/rename_expression.hpp"

namespace ballast {

std::unique_ptr<re2::RE2> compile(const RenameRule& rule) {
  auto expression = std::make_unique<re2::RE2>(rule.pattern, re2::RE2::Quiet);
  if (!expression->ok()) {
    throw Error(Errc::invalid_argument, "the expression " + quote(rule.pattern) + " is wrong: " + expression->error());
  }
  std::string error;
  if (!expression->CheckRewriteString(rule.replacement, &error)) {
    throw Error(Errc::invalid_argument, "the replacement " + quote(rule.replacement) + " is wrong: " + error);
  }
  return expression;
}

RenameRule parse_rename(const std::string& text) {
  RenameRule rule;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '=') {
      rule.replacement = text.substr(i + 1);
      return rule;
    }
    const bool escaped_equals = text.compare(i, 2, "\\=") == 0;
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (!escaped_equals) rule.pattern += text[i];
    if (escape) rule.pattern += text[++i];
  }
  throw Error(Errc::invalid_argument, quote(text) + " has no '=' between an expression and its replacement")
      .hint("write REGEX=TEMPLATE, such as ^module\\.=");
}

Checkpoint rename(Checkpoint checkpoint, const std::vector<RenameRule>& rules) {
  if (rules.empty()) return checkpoint;
  std::vector<std::unique_ptr<re2::RE2>> expressions;
  for (const RenameRule& rule : rules) expressions.push_back(compile(rule));
  std::vector<bool> matched(rules.size());
  checkpoint = rename_names(std::move(checkpoint), [&](std::string_view name) {
    std::string result(name);
    for (std::size_t i = 0; i < rules.size(); ++i)
      matched[i] = re2::RE2::GlobalReplace(&result, *expressions[i], rules[i].replacement) != 0 || matched[i];
    return result;
  });
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!matched[i])
      checkpoint.notes.push_back({checkpoint.target,
                                  "the expression " + quote(rules[i].pattern) + " matches no name: nothing is renamed",
                                  Note::Kind::remark});
  }
  return checkpoint;
}

Checkpoint strip_prefix(Checkpoint checkpoint, std::string_view prefix) {
  const auto begins = [&](const StateDict::Entry& entry) { return entry.name.starts_with(prefix); };
  if (std::none_of(checkpoint.begin(), checkpoint.end(), begins)) {
    throw Error(Errc::not_found, "no tensor's name begins with " + quote(prefix))
        .about(prefix)
        .in(checkpoint.target)
        .hint("a prefix is taken as it is, with its dot: " + mention(Remedy::strip_prefix, "module."));
  }
  return rename_names(std::move(checkpoint), [&](std::string_view name) {
    return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
  });
}

Checkpoint add_prefix(Checkpoint checkpoint, std::string_view prefix) {
  return rename_names(std::move(checkpoint),
                      [&](std::string_view name) { return std::string(prefix) + std::string(name); });
}

}  // namespace ballast
