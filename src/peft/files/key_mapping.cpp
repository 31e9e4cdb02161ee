#include "peft/files/key_mapping.hpp"

#include <ballast/error.hpp>

#include <utility>

#include "core/text.hpp"
#include "peft/names.hpp"
#include "transform/rename_expression.hpp"

namespace ballast::peft {
namespace {

[[noreturn]] void throw_two_of(std::string_view what, std::string_view name) {
  throw Error(Errc::invalid_argument, "two " + std::string(what) + " of the adapter would be called " + quote(name));
}

}  // namespace

KeyMapping::KeyMapping(const std::vector<RenameRule>& rules)
    : rules_(rules), has_matched_(rules.size()), has_renamed_(rules.size()) {
  for (const RenameRule& rule : rules) expressions_.push_back(compile(rule));
}

std::string KeyMapping::mapped(std::string_view name) {
  const std::string_view prefix = prefix_of(name), rest = name.substr(prefix.size());
  std::string target(rest);
  bool is_done = false;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!re2::RE2::PartialMatch({rest.data(), rest.size()}, *expressions_[i])) continue;
    has_matched_[i] = true;
    if (std::exchange(is_done, true)) continue;
    has_renamed_[i] = true;
    re2::RE2::GlobalReplace(&target, *expressions_[i], rules_[i].replacement);
  }
  return std::string(prefix) + target;
}

StateDict KeyMapping::map(const StateDict& tensors) {
  if (rules_.empty()) return tensors;
  StateDict result;
  result.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const std::string target = mapped(name);
    if (!result.insert(target, tensor)) throw_two_of("tensors", target);
  }
  return result;
}

LoraModules KeyMapping::map(LoraModules modules) {
  if (rules_.empty()) return modules;
  LoraModules result;
  for (auto& [name, module] : modules) {
    // Rules are for the names of tensors, and may look at all of one.
    const std::string_view ending = module.is_embedding ? ".lora_embedding_A" : ".lora_A.weight";
    std::string target = mapped(name + std::string(ending));
    if (!target.ends_with(ending)) {
      throw Error(Errc::invalid_argument, "the expressions change more of " + quote(name + std::string(ending)) +
                                              " than the name of its module: it becomes " + quote(target));
    }
    target.resize(target.size() - ending.size());
    if (!result.emplace(target, std::move(module)).second) throw_two_of("modules", target);
  }
  return result;
}

void KeyMapping::add_notes(Adapter& adapter) const {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (has_renamed_[i]) continue;
    adapter.notes.push_back({adapter.source,
                             "the expression " + quote(rules_[i].pattern) +
                                 (has_matched_[i] ? " comes too late: an earlier one matches the same names"
                                                  : " matches no name: nothing is renamed"),
                             Note::Kind::remark});
  }
}

}  // namespace ballast::peft
