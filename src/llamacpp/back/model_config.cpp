#include "llamacpp/back/model_config.hpp"

#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/name_list.hpp"
#include "core/text.hpp"

namespace ballast::llamacpp::back {
namespace {

BackCheck make_and_check(BackModel& model) {
  try {
    add_keys(model);
    add_tokens(model);
    add_tensor_signs(model);
    add_rope(model);
    if (model.of.finish != nullptr) model.of.finish(model);
    return check(model.config, model.facts);
  } catch (const Error& error) {
    return {.reason = error.message()};
  }
}

std::string listed(const std::vector<std::string>& names) {
  NameList list;
  for (const std::string& name : names) list.add(name);
  return list.text();
}

// What somebody who uses the configuration has to know.
void say_limits(MadeConfig& made, const BackModel& model, const BackCheck& checked, const std::string& target) {
  const auto say = [&](std::string text) { made.notes.push_back({target, std::move(text), Note::Kind::remark}); };
  say(fmt::format(
      "config.json is that of the class {}; what a GGUF does not say, such as dropouts and the activation, has the "
      "defaults of transformers",
      model.of.class_name));
  say("the tokenizer is not written back; its files are those of the original model");
  if (!model.likely.empty())
    say(fmt::format("config.json: the metadata do not determine {}; compare with the original", listed(model.likely)));
  if (!checked.lost.empty()) say(fmt::format("not in config.json: {}", listed(checked.lost)));
  if (model.of.has_own_code)
    say(fmt::format("transformers has no {} of its own: config.json needs \"auto_map\" and the code of the original",
                    model.of.class_name));
}

}  // namespace

MadeConfig make_config_of(const Checkpoint& gguf) {
  const GgufFacts facts(gguf);
  MadeConfig made;
  const auto refuse = [&](std::string why) {
    made.notes.push_back({gguf.target, "no config.json: " + std::move(why), Note::Kind::remark});
    return std::move(made);
  };
  const std::string type = facts.text("general.type");
  if (!type.empty() && type != "model") return refuse(fmt::format("it is of the type {}, not a model", quote(type)));
  const auto classes = classes_of(facts);
  if (facts.architecture().empty()) return refuse("nothing says of which architecture the model is");
  if (classes.empty()) return refuse(fmt::format("the architecture {} is not known", quote(facts.architecture())));

  std::size_t least = 0;
  std::string reason;
  for (const BackClass* of : classes) {
    BackModel model(facts, *of);
    const BackCheck checked = make_and_check(model);
    if (reason.empty()) reason = checked.reason;
    const std::size_t differences = checked.lost.size() + checked.added.size();
    if (!checked.is_possible || (made.of != nullptr && differences >= least)) continue;
    least = differences;
    made = {of, model.config, model.told, {}};
    say_limits(made, model, checked, gguf.target);
  }
  return made.of == nullptr ? refuse("the metadata do not determine it: " + reason) : made;
}

}  // namespace ballast::llamacpp::back
