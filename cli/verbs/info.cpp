// info: says what a checkpoint is.
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <ballast/dequantize.hpp>
#include <ballast/error.hpp>
#include <ballast/model_info.hpp>
#include <ballast/open.hpp>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>
#include <ballast/training.hpp>

#include "../info_text.hpp"
#include "../json_writer.hpp"
#include "../options.hpp"
#include "../remedies.hpp"
#include "../table.hpp"
#include "../training_note.hpp"
#include "../wrap.hpp"
#include "info_choices.hpp"
#include "info_json.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

std::uint64_t bytes_of_files(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const CheckpointFile& file : checkpoint.files) total += file.bytes;
  return total;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs metadata_pairs(const Session& session, const Checkpoint& checkpoint) {
  Pairs pairs;
  for (const auto& [key, value] : checkpoint.metadata)
    pairs.emplace_back(escape_for_terminal(key), escape_for_terminal(value));
  for (const MetadataEntry& field : checkpoint.typed_metadata) {
    const std::string value = field.is_array() ? array_text(session.screen, field) : text(field);
    pairs.emplace_back(escape_for_terminal(field.key), escape_for_terminal(value));
  }
  return pairs;
}

std::string value_text(const PlainValue& value) {
  const auto text = [&](const auto& held) -> std::string {
    using Held = std::decay_t<decltype(held)>;
    if constexpr (std::is_same_v<Held, std::monostate>)
      return "None";
    else if constexpr (std::is_same_v<Held, bool>)
      return held ? "True" : "False";
    else
      return fmt::format("{}", held);
  };
  return std::visit(text, value.value);
}

// Whether a value belongs to an optimizer: there are many of these, and they say little.
bool is_of_optimizer(std::string_view path, const TrainingParts& training) {
  return std::ranges::any_of(training.optimizers, [&](const TrainingPart& part) {
    return !part.root.empty() && path.starts_with(part.root) && path.substr(part.root.size()).starts_with('.');
  });
}

void write_values(const Session& session, InfoText& text, const Checkpoint& checkpoint, const TrainingParts& training) {
  constexpr std::size_t kMost = 20;
  Pairs pairs;
  for (const PlainValue& value : checkpoint.values) {
    if (session.shows_all() || (pairs.size() < kMost && !is_of_optimizer(value.path, training)))
      pairs.emplace_back(escape_for_terminal(value.path), escape_for_terminal(value_text(value)));
  }
  text.pairs("values", pairs);
  if (const std::size_t left_out = checkpoint.values.size() - pairs.size(); left_out > 0)
    text.line(pairs.empty() ? "values" : "", fmt::format("… and {} more; -v shows all", left_out));
}

// The keys that dictionaries in the dictionary of a pickle lie under.
std::vector<std::string> nested_lines(const Session& session, const Checkpoint& checkpoint) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> lines;
  for (const Root& root : checkpoint.roots) {
    if (!session.shows_all() && lines.size() == kMost) {
      lines.push_back(fmt::format("… and {} more; -v shows all", checkpoint.roots.size() - kMost));
      break;
    }
    lines.push_back(
        escape_for_terminal(fmt::format("{}, {}", root.path, session.screen.plural(root.tensors, "tensor"))));
  }
  if (!lines.empty())
    lines[0] += fmt::format("  (--root {} takes only these)", escape_for_terminal(checkpoint.roots[0].path));
  return lines;
}

std::vector<std::string> dangerous_lines(const Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  for (const Global& global : checkpoint.dangerous)
    lines.push_back(escape_for_terminal(fmt::format("{}.{}: {}", global.module, global.name, global.why)));
  return lines;
}

std::vector<std::string> tied_lines(const Summary& summary) {
  std::vector<std::string> lines;
  for (const auto& names : summary.tied)
    lines.push_back(escape_for_terminal(fmt::format("{}", fmt::join(names, " = "))));
  return lines;
}

std::vector<std::string> note_lines(const std::vector<Note>& notes) {
  std::vector<std::string> lines;
  for (const Note& note : notes)
    lines.push_back(escape_for_terminal(note.where.empty() ? text_of(note) : note.where + ": " + text_of(note)));
  return lines;
}

std::vector<std::string> dtype_lines(const Terminal& screen, const Summary& summary) {
  std::vector<std::string> lines;
  for (const auto& total : summary.dtypes) {
    lines.push_back(fmt::format("{:<5} {}, {}", name(total.dtype), screen.plural(total.tensors, "tensor"),
                                screen.bytes_in_words(total.bytes)));
  }
  return lines;
}

void write_pattern_table(Session& session, const Summary& summary) {
  // People read the pattern view, so it is aligned even in a pipe.
  Terminal aligned = session.screen;
  aligned.interactive = true;
  aligned.whole = session.shows_all();
  Table table(session.out, aligned,
              {{},
               {.right = true},
               {.color = Color::cyan, .drop = 1, .title = "dtype"},
               {.drop = 2, .title = "shape"},
               {.right = true, .color = Color::green}},
              "  ");
  for (const auto& pattern : summary.patterns) {
    table.row({escape_for_terminal(pattern.name),
               pattern.tensors == 1 ? "" : fmt::format("{}{}", aligned.times(), pattern.tensors),
               std::string(name(pattern.dtype)), to_string(pattern.shape), session.screen.bytes(pattern.bytes)});
  }
  table.finish();
}

// The facts that people want to know first about a model.
std::vector<std::string> model_lines(const Terminal& screen, const ModelInfo& model) {
  if (model.class_name.empty() && model.type.empty()) return {};
  std::string line = escape_for_terminal(model.class_name.empty() ? model.type : model.class_name);
  const auto add = [&](std::string_view what, const std::optional<std::uint64_t>& count) {
    if (count) line += fmt::format(", {} {}", what, screen.count(*count));
  };
  add("blocks", model.layers);
  add("context", model.context);
  add("embedding", model.hidden_size);
  add("heads", model.heads);
  if (model.kv_heads && model.kv_heads != model.heads) line += fmt::format(" ({} of keys)", *model.kv_heads);
  add("experts", model.experts);
  if (model.experts && model.experts_used) line += fmt::format(" ({} at a time)", *model.experts_used);
  add("tokens", model.vocabulary);
  if (!model.dtype.empty()) line += ", " + escape_for_terminal(model.dtype);
  if (model.has_chat_template) line += ", a chat template";
  std::vector<std::string> lines = {line};
  for (const auto& [name, class_name] : model.parts)
    lines.push_back(escape_for_terminal(fmt::format("{}: {}", name, class_name)));
  return lines;
}

std::vector<std::string> adapter_lines(const ModelInfo& model) {
  if (!model.adapter) return {};
  std::string line = model.adapter->type.empty() ? "of a type that it does not say" : model.adapter->type;
  if (model.adapter->rank) line += fmt::format(", rank {}", *model.adapter->rank);
  if (model.adapter->alpha) line += fmt::format(", alpha {}", *model.adapter->alpha);
  if (!model.adapter->base.empty()) line += ", for " + model.adapter->base;
  return {escape_for_terminal(line) + "  (ballast adapter info says more)"};
}

std::vector<std::string> generation_lines(const ModelInfo& model) {
  std::string line;
  for (const auto& [key, value] : model.generation)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", key, value);
  return line.empty() ? std::vector<std::string>() : std::vector{escape_for_terminal(line)};
}

std::vector<std::string> estimate_lines(const Terminal& screen, const Estimates& estimates) {
  std::string line = fmt::format("{} for the weights", screen.bytes_in_words(estimates.weights_bytes));
  if (estimates.bits_per_weight) line += fmt::format(" ({:.2f} bits a weight)", *estimates.bits_per_weight);
  if (estimates.kv_cache_bytes)
    line += fmt::format(", and {} of KV cache in F16 for {} tokens", screen.bytes_in_words(*estimates.kv_cache_bytes),
                        screen.count(estimates.context));
  return {line};
}

std::vector<std::string> escaped(std::vector<std::string> lines) {
  for (std::string& line : lines) line = escape_for_terminal(line);
  return lines;
}

// What the parts of quantized weights stand for.
std::string dequantized_line(const Terminal& screen, const Checkpoint& checkpoint) {
  if (const auto result = dequantized_size(checkpoint))
    return fmt::format("--dequantize makes {} of them, {}", name(result->dtype), screen.bytes_in_words(result->bytes));
  return "its parts can be copied, and are not decoded";
}

std::vector<std::string> quantization_lines(const Terminal& screen, const Checkpoint& checkpoint) {
  if (!checkpoint.dequantized.empty() && !checkpoint.quantization)
    return {fmt::format("{}, shown as the numbers that it stands for", escape_for_terminal(checkpoint.dequantized))};
  if (!checkpoint.quantization) return {};
  const Quantization& found = *checkpoint.quantization;
  std::string line = escape_for_terminal(found.scheme);
  if (found.bits) line += fmt::format(", {}", plural(*found.bits, "bit"));
  if (found.group_size) line += fmt::format(", groups of {}", *found.group_size);
  line += fmt::format(": {} in {} ({})", plural(found.modules, "weight"), plural(found.parts.size(), "part"),
                      escape_for_terminal(found.evidence));
  std::vector<std::string> lines = {line, dequantized_line(screen, checkpoint)};
  if (const auto left = unquantized_modules(found); !left.empty()) {
    constexpr std::size_t kMostNamed = 8;
    const std::span some = std::span(left).first(std::min(left.size(), kMostNamed));
    lines.push_back(escape_for_terminal(
        fmt::format("left as they are: {}{}", fmt::join(some, ", "), some.size() < left.size() ? ", …" : "")));
  }
  return lines;
}

void write_text(Session& session, const Checkpoint& checkpoint, const InfoFacts& facts) {
  const auto& [summary, model, estimates, training] = facts;
  InfoText text(session);
  const Terminal& screen = session.screen;
  text.line("target", escape_for_terminal(checkpoint.target));
  text.line("format", name(checkpoint.format));
  const std::uint64_t files = checkpoint.files.size();
  text.line("files", fmt::format("{}, {}", screen.count(files), screen.bytes_in_words(bytes_of_files(checkpoint))));
  if (checkpoint.shards > 1) text.line("shards", screen.count(checkpoint.shards));
  text.line("tensors", screen.count(summary.tensors));
  text.line("parameters", screen.count(summary.parameters));
  text.line("bytes", screen.bytes(summary.bytes));
  text.facts("dtypes", dtype_lines(screen, summary));
  text.facts("model", model_lines(screen, model));
  text.facts("adapter", adapter_lines(model));
  if (!model.tokenizer.empty()) text.line("tokenizer", escape_for_terminal(model.tokenizer));
  text.facts("generation", generation_lines(model));
  if (!model.empty() && !model.adapter) text.facts("to run", estimate_lines(screen, estimates));
  text.facts("quantized", quantization_lines(screen, checkpoint));
  text.facts("dangerous", dangerous_lines(checkpoint));
  text.pairs("metadata", metadata_pairs(session, checkpoint));
  text.facts("nested", nested_lines(session, checkpoint));
  text.facts("training", escaped(training_lines(screen, training)));
  write_values(session, text, checkpoint, training);
  text.facts("tied", tied_lines(summary));
  if (summary.wasted_bytes > 0) text.line("wasted", screen.bytes_in_words(summary.wasted_bytes));
  text.facts("notes", note_lines(checkpoint.notes));
  text.facts("notes", note_lines(model.notes));
  if (summary.patterns.empty()) return;
  session.out.write('\n');
  write_pattern_table(session, summary);
}

struct InfoArguments {
  std::vector<std::string> targets;
  std::uint64_t context = 0;  // 0: as many tokens as the model was trained on, but at most kUsualContext
};

constexpr std::uint64_t kUsualContext = 4096;

Estimates estimate(const Checkpoint& checkpoint, const Summary& summary, const ModelInfo& model,
                   const InfoArguments& arguments, bool is_decoded) {
  Estimates estimates;
  estimates.weights_bytes = summary.bytes;
  estimates.context =
      arguments.context != 0 ? arguments.context : std::min(kUsualContext, model.context.value_or(kUsualContext));
  estimates.kv_cache_bytes = kv_cache_bytes(model, estimates.context);
  // Parts of packed weights that cannot be decoded are not weights.
  if (summary.parameters != 0 && (!checkpoint.quantization || is_decoded))
    estimates.bits_per_weight = 8 * static_cast<double>(summary.bytes) / static_cast<double>(summary.parameters);
  return estimates;
}

// How many numbers the quantized weights of a checkpoint stand for, and all others have. Nothing if that is not known.
std::optional<std::uint64_t> count_decoded(const Checkpoint& checkpoint, const Limits& limits) {
  if (!checkpoint.quantization || !dequantized_size(checkpoint, limits)) return std::nullopt;
  return summarize(dequantize(checkpoint, {.limits = limits})).parameters;
}

// The checkpoint, or what there is to choose from.
Checkpoint open_or_list(Session& session, const std::string& target, std::vector<std::string>& choices) {
  try {
    return open_to_look(session, target);
  } catch (const Error& error) {
    if (error.code() == Errc::invalid_argument) choices = choices_in(target, session.open_options());
    if (choices.size() < 2) throw;
    return {};
  }
}

// Returns the exit code.
int say_info(Session& session, const std::string& target, const InfoArguments& arguments, JsonWriter* json) {
  std::vector<std::string> choices;
  Checkpoint checkpoint = open_or_list(session, target, choices);
  if (!choices.empty()) return show_choices(session, target, choices, json);
  std::optional<std::uint64_t> wasted_bytes;
  if (session.selection != Selection{}) {
    // Tensors that a selection leaves out are not wasted bytes.
    wasted_bytes = summarize(checkpoint).wasted_bytes;
    checkpoint = select_tensors(session, std::move(checkpoint));
  }
  Summary summary = summarize(checkpoint);
  summary.wasted_bytes = wasted_bytes.value_or(summary.wasted_bytes);
  const TrainingParts training = is_training_checkpoint(checkpoint) ? training_parts(checkpoint) : TrainingParts();
  if (auto note = session.json ? training_note(target, training) : std::nullopt)
    checkpoint.notes.push_back({"", std::move(*note), Note::Kind::remark});
  const ModelInfo model = model_info(checkpoint, session.open_options());
  const auto decoded = count_decoded(checkpoint, session.limits);
  if (decoded) summary.parameters = *decoded;  // and not the bytes that they are packed in
  const Estimates estimates = estimate(checkpoint, summary, model, arguments, decoded.has_value());
  if (arguments.context != 0 && !estimates.kv_cache_bytes)
    session.note(fmt::format("--context says nothing here: {} does not tell what a model keeps of its tokens", target));
  const InfoFacts facts{summary, model, estimates, training};
  json ? write_info(*json, checkpoint, facts) : write_text(session, checkpoint, facts);
  return 0;
}

int say_all_as_json(Session& session, const InfoArguments& arguments) {
  JsonWriter json(session.out, "ballast.info/1");
  int exit_code = 0;
  if (arguments.targets.size() == 1) {
    exit_code = say_info(session, arguments.targets.front(), arguments, &json);
    json.finish();
    return exit_code;
  }
  json.key("targets");
  json.begin_array(JsonWriter::Layout::lines);
  for (const std::string& target : arguments.targets) {
    json.begin_object(JsonWriter::Layout::lines);
    const int code = say_info(session, target, arguments, &json);
    if (exit_code == 0) exit_code = code;
    json.end();
  }
  json.finish();
  return exit_code;
}

// A target that cannot be shown hides none of the others. Returns the first exit code that is not 0.
int say_all_as_text(Session& session, const InfoArguments& arguments) {
  int exit_code = 0;
  bool is_first = true;
  for (const std::string& target : arguments.targets) {
    if (!std::exchange(is_first, false)) session.out.write('\n');
    int code = 0;
    try {
      code = say_info(session, target, arguments, nullptr);
    } catch (const Error& error) {
      if (arguments.targets.size() == 1 || error.code() == Errc::cancelled) throw;
      session.out.flush();
      code = say_error(session, error);
    }
    session.out.flush();  // before what is said of the next target on stderr
    if (exit_code == 0) exit_code = code;
  }
  return exit_code;
}

int run_info(Session& session, const InfoArguments& arguments) {
  if (arguments.targets.empty())
    throw Error(Errc::invalid_argument, "TARGET is required").hint("ballast info --help shows how it is used");
  return session.json ? say_all_as_json(session, arguments) : say_all_as_text(session, arguments);
}

}  // namespace

void add_info(Command& verb, Session& session) {
  auto arguments = std::make_shared<InfoArguments>();
  verb.positional("TARGET", &arguments->targets, "files, folders, indexes, https://, hf://, s3://, or - for stdin");
  verb.option("--context", "N", &arguments->context, "for how many tokens the KV cache is estimated (4096)");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples =
      "  ballast info model.safetensors\n  ballast info model/ --context 32768\n"
      "  ballast info model/ --json | jq .parameters\n";
  verb.run = [arguments, &session] { return run_info(session, *arguments); };
}

}  // namespace ballast::cli
