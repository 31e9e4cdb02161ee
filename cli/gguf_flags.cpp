#include "gguf_flags.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/importance.hpp>
#include <ballast/recipe.hpp>
#include <ballast/remote.hpp>
#include <ballast/text.hpp>

#include "options.hpp"
#include "table.hpp"

namespace ballast::cli {
namespace {

bool is_folder(const Session& session, const std::string& target) {
  return options_for(target, session.open_options()).files->list(target).has_value();
}

std::optional<DType> optional_type(std::string_view option, const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(dtype_argument(option, text));
}

RecipeOptions recipe_options(const Session& session, const GgufFlags& flags) {
  RecipeOptions options;
  if (flags.has_type()) options.type = *flags.type;
  options.pure = flags.pure;
  options.leave_output_tensor = flags.leave_output_tensor;
  options.allow_requantize = flags.allow_requantize;
  options.output_tensor_type = optional_type("--output-tensor-type", flags.output_tensor_type);
  options.token_embedding_type = optional_type("--token-embedding-type", flags.token_embedding_type);
  for (const std::string& text : flags.tensor_types) options.tensor_types.push_back(parse_tensor_type(text));
  if (!flags.imatrix.empty()) {
    options.importance =
        ImportanceMatrix::open(flags.imatrix, {flags.include_weights, flags.exclude_weights, session.open_options()});
  }
  return options;
}

// Options that say how a recipe is made say nothing without one.
void check_alone(const GgufFlags& flags) {
  const std::pair<bool, std::string_view> given[] = {
      {!flags.imatrix.empty(), "--imatrix"},
      {flags.pure, "--pure"},
      {flags.leave_output_tensor, "--leave-output-tensor"},
      {!flags.output_tensor_type.empty(), "--output-tensor-type"},
      {!flags.token_embedding_type.empty(), "--token-embedding-type"},
      {!flags.tensor_types.empty(), "--tensor-type"},
      {flags.allow_requantize, "--allow-requantize"},
  };
  for (const auto& [is_given, flag] : given) {
    if (is_given && !flags.has_type())
      throw Error(Errc::invalid_argument, fmt::format("{} needs --type", flag)).hint("such as --type Q4_K_M");
  }
  if (flags.imatrix.empty() && !(flags.include_weights.empty() && flags.exclude_weights.empty()))
    throw Error(Errc::invalid_argument, "--include-weights and --exclude-weights need --imatrix");
}

}  // namespace

void add_gguf_options(Command& verb, GgufFlags& flags) {
  verb.option("--imatrix", "FILE", &flags.imatrix,
              "for --type: what each column matters, as llama-imatrix measured it");
  verb.option("--include-weights", "TEXT", &flags.include_weights,
              "for --imatrix: only tensors with this in their name");
  verb.option("--exclude-weights", "TEXT", &flags.exclude_weights, "for --imatrix: no tensors with this in their name");
  verb.option("--tensor-type", "REGEX=TYPE", &flags.tensor_types,
              "for --type: tensors that the expression finds get this type; the first that does counts");
  verb.option("--output-tensor-type", "TYPE", &flags.output_tensor_type, "for --type: the type of output.weight");
  verb.option("--token-embedding-type", "TYPE", &flags.token_embedding_type, "for --type: that of token_embd.weight");
  verb.flag("--leave-output-tensor", &flags.leave_output_tensor, "for --type: output.weight stays as it is");
  verb.flag("--pure", &flags.pure, "for --type: one type for all, without the recipe's exceptions");
  verb.flag("--allow-requantize", &flags.allow_requantize, "for --type: blocks may be decoded and encoded again");
  verb.option("--pre-tokenizer", "NAME", &flags.pre_tokenizer,
              "how llama.cpp calls the pre-tokenizer, where tokenizer.json has one that is not known");
}

bool makes_gguf_model(const Session& session, const GgufFlags& flags, const Checkpoint& input, const std::string& out,
                      const std::string& names) {
  check_alone(flags);
  const bool is_gguf = input.format == Format::gguf, to_gguf = out.ends_with(".gguf");
  if (flags.has_type() && !to_gguf) {
    throw Error(Errc::invalid_argument, "--type is a recipe for a GGUF file")
        .hint("name the output something.gguf; --dtype casts tensors of other files");
  }
  if (flags.has_type() && !names.empty() && names != "gguf") {
    throw Error(Errc::invalid_argument,
                fmt::format("--type makes a model with llama.cpp's names, and --names {} does not", names))
        .hint("leave one of the two out");
  }
  const bool is_wanted = flags.has_type() || (names.empty() && is_folder(session, input.target));
  if (is_gguf || !to_gguf || !is_wanted) return false;
  const ModelClass model = model_class(input.target, session.open_options());
  if (!model.architecture.empty()) return true;
  const std::string class_text = fmt::format("config.json names the class \"{}\", which is not known", model.name);
  if (flags.has_type()) {
    throw Error(Errc::invalid_argument,
                model.name.empty() ? "nothing says of which architecture the model is" : class_text)
        .in(input.target)
        .hint("its config.json lies beside the weights; " + Advice::mention(Remedy::names, "gguf") + " " +
              Advice::mention(Remedy::architecture, "NAME") + " renames tensors without it");
  }
  if (!model.name.empty()) session.note(class_text + ": the tensors are copied as they are");
  return false;
}

Checkpoint as_gguf_model(const Session& session, const GgufFlags& flags, Checkpoint input) {
  try {
    return to_gguf_model(std::move(input), {session.open_options(), flags.pre_tokenizer});
  } catch (Error& error) {
    const bool may_be_copied = error.code() == Errc::not_found || error.code() == Errc::malformed;
    if (!flags.has_type() && may_be_copied && error.hint().empty())
      error.hint(Advice::mention(Remedy::names, "keep") + " copies the tensors as they are");
    throw;
  }
}

Checkpoint with_types(const Session& session, const GgufFlags& flags, Checkpoint model) {
  return apply_recipe(std::move(model), recipe_options(session, flags));
}

void show_types(Session& session, const SavePlan& plan) {
  Table table(session.out, session.screen,
              {{}, {.color = Color::cyan}, {.drop = 1, .title = "shape"}, {.right = true, .color = Color::green}});
  std::uint64_t weights = 0, bytes = 0;
  for (const auto& file : plan.files) {
    for (const auto& item : file.items) {
      weights += item.tensor.numel();
      bytes += item.tensor.nbytes();
      table.row({escape_for_terminal(item.name), std::string(name(item.tensor.dtype())), to_string(item.tensor.shape()),
                 session.screen.bytes(item.tensor.nbytes())});
    }
  }
  table.finish();
  if (weights == 0) return;
  session.out.flush();
  session.say(fmt::format("{:.2f} bits a weight", 8 * static_cast<double>(bytes) / static_cast<double>(weights)));
}

}  // namespace ballast::cli
