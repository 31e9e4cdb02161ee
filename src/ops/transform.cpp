#include <ballast/error.hpp>
#include <ballast/transform.hpp>

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/text.hpp"
#include "ops/once_per_tensor.hpp"
#include "ops/quantize.hpp"

namespace ballast {
namespace {

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

Checkpoint rename_by(Checkpoint checkpoint, const std::function<std::string(std::string_view)>& renamed) {
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  std::map<std::string, std::string, std::less<>> origins;  // for the message about two that meet
  for (const auto& [name, tensor] : checkpoint) {
    const std::string target = renamed(name);
    const auto [origin, is_new] = origins.try_emplace(target, name);
    if (!is_new) {
      throw Error(Errc::invalid_argument, "tensors " + quote(origin->second) + " and " + quote(name) +
                                              " would both be called " + quote(target));
    }
    tensors.insert(target, tensor);
  }
  checkpoint.tensors = std::move(tensors);

  std::map<std::string, std::string, std::less<>> aliases;
  for (const auto& [removed, kept] : checkpoint.aliases) {
    checkpoint.metadata.erase(removed);  // said anew, under the new names, when the checkpoint is saved
    aliases.emplace(renamed(removed), renamed(kept));
  }
  checkpoint.aliases = std::move(aliases);
  for (Composite& composite : checkpoint.composites) {
    composite.name = renamed(composite.name);
    for (std::string& part : composite.parts) part = renamed(part);
  }
  return checkpoint;
}

// Two names of one tensor stay two names of one tensor.
void tie_aliases(const Checkpoint& checkpoint, StateDict& tensors) {
  for (const auto& [removed, kept] : checkpoint.aliases) {
    const Tensor* same = tensors.find(kept);
    if (same != nullptr && tensors.contains(removed)) tensors.replace(removed, Tensor(*same));
  }
}

}  // namespace

bool Selection::matches(std::string_view name) const {
  const auto any = [&](const std::vector<std::string>& globs) {
    return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_match(glob, name); });
  };
  return (include.empty() || any(include)) && !any(exclude);
}

Checkpoint select(Checkpoint checkpoint, const Selection& selection) {
  if (selection.include.empty() && selection.exclude.empty()) return checkpoint;
  StateDict chosen;
  for (const auto& [name, tensor] : checkpoint) {
    if (selection.matches(name)) chosen.insert(name, tensor);
  }
  checkpoint.tensors = std::move(chosen);
  return checkpoint;
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
      .hint("write --rename 'REGEX=TEMPLATE', such as '^module\\.='");
}

Checkpoint rename(Checkpoint checkpoint, const std::vector<RenameRule>& rules) {
  if (rules.empty()) return checkpoint;
  std::vector<std::unique_ptr<re2::RE2>> expressions;
  for (const RenameRule& rule : rules) expressions.push_back(compile(rule));
  return rename_by(std::move(checkpoint), [&](std::string_view name) {
    std::string result(name);
    for (std::size_t i = 0; i < rules.size(); ++i)
      re2::RE2::GlobalReplace(&result, *expressions[i], rules[i].replacement);
    return result;
  });
}

Checkpoint strip_prefix(Checkpoint checkpoint, std::string_view prefix) {
  const auto begins = [&](const StateDict::Entry& entry) { return entry.name.starts_with(prefix); };
  if (std::none_of(checkpoint.begin(), checkpoint.end(), begins)) {
    throw Error(Errc::not_found, "no tensor's name begins with " + quote(prefix))
        .in(checkpoint.target)
        .hint("a prefix is taken as it is, with its dot: --strip-prefix module.");
  }
  return rename_by(std::move(checkpoint), [&](std::string_view name) {
    return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
  });
}

Checkpoint add_prefix(Checkpoint checkpoint, std::string_view prefix) {
  return rename_by(std::move(checkpoint),
                   [&](std::string_view name) { return std::string(prefix) + std::string(name); });
}

Checkpoint cast(Checkpoint checkpoint, DType dtype) {
  if (info(dtype).kind == DTypeKind::ggml) return quantize(std::move(checkpoint), dtype);
  if (!is_floating(dtype))
    throw Error(Errc::invalid_argument, std::string(name(dtype)) + " is no floating dtype to cast to");
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  OncePerTensor once;
  for (const auto& [name, tensor] : checkpoint) {
    try {
      const bool is_real = is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
      tensors.insert(name, is_real ? once(tensor, [&](const Tensor& t) { return t.to(dtype); }) : tensor);
    } catch (Error& error) {
      throw Error(error.code(), "tensor " + quote(name) + ": " + error.message()).hint("leave it out with --exclude");
    }
  }
  tie_aliases(checkpoint, tensors);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

Checkpoint cast(Checkpoint checkpoint, const std::vector<CastRule>& rules) {
  // The names of each rule as a checkpoint of their own, cast, and put back in their places.
  std::vector<Checkpoint> chosen(rules.size());
  for (const auto& [name, tensor] : checkpoint) {
    const auto rule = std::ranges::find_if(rules, [&](const CastRule& r) { return glob_match(r.glob, name); });
    if (rule != rules.end()) chosen[static_cast<std::size_t>(rule - rules.begin())].tensors.insert(name, tensor);
  }
  StateDict tensors = checkpoint.tensors;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (chosen[i].size() == 0) continue;
    const Checkpoint done = cast(std::move(chosen[i]), rules[i].dtype);
    for (const auto& [name, tensor] : done) tensors.replace(name, tensor);
    checkpoint.notes.insert(checkpoint.notes.end(), done.notes.begin(), done.notes.end());
    for (const Field& field : done.fields) checkpoint.fields.set(field);
  }
  tie_aliases(checkpoint, tensors);
  checkpoint.tensors = std::move(tensors);
  return checkpoint;
}

}  // namespace ballast
