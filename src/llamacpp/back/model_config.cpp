#include "llamacpp/back/model_config.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/name_list.hpp"
#include "core/text.hpp"
#include "llamacpp/config_classes.hpp"

namespace ballast::llamacpp::back {
namespace {

Json make_config(BackModel& model) {
  add_keys(model);
  add_tokens(model);
  add_tensor_signs(model);
  add_rope(model);
  if (model.of.finish != nullptr) model.of.finish(model);
  return model.config;
}

std::string listed(const std::vector<std::string>& names) {
  NameList list;
  for (const std::string& name : names) list.add(name);
  return list.text();
}

// What somebody who uses the configuration has to know.
void say_limits(MadeConfig& made, const BackModel& model, const BackCheck& checked, const std::string& target) {
  const auto say = [&](std::string text) { made.notes.push_back({target, std::move(text), Note::Kind::remark}); };
  say(
      fmt::format("config.json is that of a {}; what a GGUF does not say, such as dropouts and the activation, has the "
                  "defaults of transformers",
                  model.of.class_name));
  say("the tokenizer is not written back; its files are those of the original model");
  if (!model.likely.empty())
    say(fmt::format("config.json: the metadata do not determine {}; compare with the original", listed(model.likely)));
  if (!checked.lost.empty()) say(fmt::format("not in config.json: {}", listed(checked.lost)));
  const bool is_known = config_class(model.of.model_type) != nullptr;
  const bool has_own_code =
      model.of.class_name == "JinaBertModel" ||
      (!is_known && (model.of.model_type == "nomic_bert" || model.of.model_type == "minicpm" ||
                     model.of.model_type == "internlm2" || model.of.model_type == "llama_bidirec"));
  if (has_own_code)
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
  const auto classes = classes_of(facts);
  if (facts.architecture().empty()) return refuse("nothing says of which architecture the model is");
  if (classes.empty()) return refuse(fmt::format("the architecture {} is not known", quote(facts.architecture())));

  std::size_t least = 0;
  std::string reason;
  for (const BackClass* of : classes) {
    BackModel model(facts, *of);
    Json config = make_config(model);
    const BackCheck checked = check(config, facts);
    if (reason.empty()) reason = checked.reason;
    const std::size_t differences = checked.lost.size() + checked.added;
    if (!checked.is_possible || (made.of != nullptr && differences >= least)) continue;
    least = differences;
    made = {of, std::move(config), std::move(model.told), {}};
    say_limits(made, model, checked, gguf.target);
  }
  return made.of == nullptr ? refuse("the metadata do not determine it: " + reason) : made;
}

}  // namespace ballast::llamacpp::back
