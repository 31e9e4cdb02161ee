// info: says what a checkpoint is.
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>
#include <ballast/training.hpp>

#include "../info_text.hpp"
#include "../json_writer.hpp"
#include "../options.hpp"
#include "../place.hpp"
#include "../remedies.hpp"
#include "../table.hpp"
#include "../training_note.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

std::uint64_t bytes_of_files(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const CheckpointFile& file : checkpoint.files) total += file.bytes;
  return total;
}

void write_dtypes(JsonWriter& json, const Summary& summary) {
  json.key("dtypes");
  json.begin_object(Layout::lines);
  for (const auto& total : summary.dtypes) {
    json.key(name(total.dtype));
    json.begin_object();
    json.field("tensors", total.tensors);
    json.field("bytes", total.bytes);
    json.end();
  }
  json.end();
}

void write_patterns(JsonWriter& json, const Summary& summary) {
  json.key("patterns");
  json.begin_array(Layout::lines);
  for (const auto& pattern : summary.patterns) {
    json.begin_object();
    json.field("name", pattern.name);
    json.field("dtype", name(pattern.dtype));
    json.array_field("shape", pattern.shape);
    json.field("tensors", pattern.tensors);
    json.field("bytes", pattern.bytes);
    json.end();
  }
  json.end();
}

std::string array_text(const Terminal& screen, const MetadataEntry& field) {
  return fmt::format("{} of {}", screen.plural(field.count, "item"), name(field.element_type));
}

// Writes the subtrees if the file's own nesting is known; otherwise the first parts of dotted names.
void write_roots(JsonWriter& json, const Checkpoint& checkpoint, const Summary& summary) {
  if (checkpoint.roots.empty()) return json.array_field("roots", summary.roots);
  std::vector<std::string> paths;
  for (const Root& root : checkpoint.roots) paths.push_back(root.path);
  json.array_field("roots", paths);
}

void write_value(JsonWriter& json, const PlainValue& value) {
  json.begin_object();
  json.field("path", value.path);
  json.field("type", value.type);
  std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          json.field("value", nullptr);
        else
          json.field("value", held);
      },
      value.value);
  json.end();
}

void write_composites(JsonWriter& json, const Checkpoint& checkpoint) {
  json.key("composites");
  json.begin_array(Layout::lines);
  for (const Composite& composite : checkpoint.composites) {
    json.begin_object();
    json.field("name", composite.name);
    json.field("layout", composite.layout);
    json.array_field("shape", composite.shape);
    json.array_field("parts", composite.parts);
    if (composite.layout == "quantized" && !composite.axis) {
      json.field("scale", composite.scale);
      json.field("zero_point", composite.zero_point);
    }
    if (composite.axis) json.field("axis", std::uint64_t{*composite.axis});
    json.end();
  }
  json.end();
}

void write_quantization(JsonWriter& json, const Quantization& quantization) {
  json.key("quantization");
  json.begin_object();
  json.field("scheme", quantization.scheme);
  json.field("evidence", quantization.evidence);
  if (quantization.bits) json.field("bits", *quantization.bits);
  if (quantization.group_size) json.field("group_size", *quantization.group_size);
  json.field("modules", quantization.modules);
  json.field("parts", std::uint64_t{quantization.parts.size()});
  json.end();
}

// Arrays are shortened: nobody asks info for a vocabulary.
void write_field(JsonWriter& json, const MetadataEntry& field) {
  json.key(field.key);
  if (field.is_array()) return json.value(array_text(Terminal{.interactive = true}, field));
  std::visit([&](const auto& held) { json.value(held); }, field.value().get());
}

void write_part(JsonWriter& json, const TrainingPart& part) {
  json.begin_object();
  json.field("root", part.root);
  json.field("tensors", part.tensors);
  json.field("bytes", part.bytes);
  json.end();
}

void write_training(JsonWriter& json, const TrainingParts& parts) {
  json.key("training");
  json.begin_object(Layout::lines);
  json.key("model");
  write_part(json, parts.model);
  json.field("prefix", parts.prefix);
  const std::pair<std::string_view, const std::vector<TrainingPart>*> lists[] = {
      {"optimizers", &parts.optimizers}, {"averages", &parts.averages}, {"others", &parts.others}};
  for (const auto& [key, list] : lists) {
    json.key(key);
    json.begin_array();
    for (const TrainingPart& part : *list) write_part(json, part);
    json.end();
  }
  json.array_field("tied", parts.tied);
  json.end();
}

void write_json(Session& session, const Checkpoint& checkpoint, const Summary& summary, const TrainingParts& training) {
  const Places places(checkpoint);
  JsonWriter json(session.out, "ballast.info/1");
  json.field("target", checkpoint.target);
  json.field("format", name(checkpoint.format));
  json.key("files");
  json.begin_array(Layout::lines);
  for (const CheckpointFile& file : checkpoint.files) {
    json.begin_object();
    json.field("file", places.relative(file.path));
    json.field("bytes", file.bytes);
    json.end();
  }
  json.end();
  json.field("shards", checkpoint.shards);
  json.field("tensors", summary.tensors);
  json.field("parameters", summary.parameters);
  json.field("bytes", summary.bytes);
  write_dtypes(json, summary);
  json.key("metadata");
  json.begin_object(Layout::lines);
  for (const auto& [key, value] : checkpoint.metadata) json.field(key, value);
  for (const MetadataEntry& field : checkpoint.typed_metadata) write_field(json, field);
  json.end();
  write_roots(json, checkpoint, summary);
  json.key("tied");
  json.begin_array(Layout::lines);
  for (const auto& names : summary.tied) {
    json.begin_array();
    for (const auto& name : names) json.value(name);
    json.end();
  }
  json.end();
  json.field("wasted_bytes", summary.wasted_bytes);
  write_patterns(json, summary);
  if (!checkpoint.values.empty()) {
    json.key("values");
    json.begin_array(Layout::lines);
    for (const PlainValue& value : checkpoint.values) write_value(json, value);
    json.end();
  }
  if (training.is_training()) write_training(json, training);
  if (checkpoint.quantization) write_quantization(json, *checkpoint.quantization);
  if (!checkpoint.composites.empty()) write_composites(json, checkpoint);
  if (!checkpoint.dangerous.empty()) {
    json.key("dangerous");
    json.begin_array(Layout::lines);
    for (const Global& global : checkpoint.dangerous) json.value(global.module + "." + global.name);
    json.end();
  }
  json.key("notes");
  json.begin_array(Layout::lines);
  for (const Note& note : checkpoint.notes) {
    json.begin_object();
    json.field("where", note.where);
    json.field("text", text_of(note));
    json.end();
  }
  json.end();
  json.finish();
}

std::vector<std::string> metadata_lines(const Session& session, const Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : checkpoint.metadata)
    lines.push_back(fmt::format("{} = {}", escape_for_terminal(key), escape_for_terminal(value)));
  for (const MetadataEntry& field : checkpoint.typed_metadata) {
    const std::string value = field.is_array() ? array_text(session.screen, field) : text(field);
    lines.push_back(fmt::format("{} = {}", escape_for_terminal(field.key), escape_for_terminal(value)));
  }
  return lines;
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

std::vector<std::string> value_lines(const Session& session, const Checkpoint& checkpoint) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> lines;
  for (const PlainValue& value : checkpoint.values) {
    if (!session.shows_all() && lines.size() == kMost) {
      lines.push_back(fmt::format("… and {} more; -v shows all", checkpoint.values.size() - kMost));
      break;
    }
    lines.push_back(escape_for_terminal(fmt::format("{} = {}", value.path, value_text(value))));
  }
  return lines;
}

std::vector<std::string> root_lines(const Session& session, const Checkpoint& checkpoint) {
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
    lines[0] += fmt::format("  (--root {} takes it alone)", escape_for_terminal(checkpoint.roots[0].path));
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

std::vector<std::string> note_lines(const Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  for (const Note& note : checkpoint.notes)
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
  Table table(session.out, aligned,
              {{}, {.right = true}, {.color = Color::cyan}, {}, {.right = true, .color = Color::green}}, "  ");
  for (const auto& pattern : summary.patterns) {
    table.row({escape_for_terminal(pattern.name), pattern.tensors == 1 ? "" : fmt::format("×{}", pattern.tensors),
               std::string(name(pattern.dtype)), to_string(pattern.shape), session.screen.bytes(pattern.bytes)});
  }
  table.finish();
}

// The facts that people want to know first about a language model.
std::vector<std::string> model_lines(const Terminal& screen, const Checkpoint& checkpoint) {
  const auto architecture = checkpoint.typed_metadata.find_string("general.architecture");
  if (!architecture) return {};
  std::string line = escape_for_terminal(*architecture);
  const auto add = [&](std::string_view what, const MetadataEntry* field) {
    if (!field) return;
    line += fmt::format(", {} {}", what, field->is_array() ? screen.count(field->count) : text(*field));
  };
  const std::string prefix = std::string(*architecture) + ".";
  add("blocks", checkpoint.typed_metadata.find(prefix + "block_count"));
  add("context", checkpoint.typed_metadata.find(prefix + "context_length"));
  add("embedding", checkpoint.typed_metadata.find(prefix + "embedding_length"));
  add("tokens", checkpoint.typed_metadata.find("tokenizer.ggml.tokens"));
  if (checkpoint.typed_metadata.contains("tokenizer.chat_template")) line += ", a chat template";
  return {line};
}

std::vector<std::string> escaped(std::vector<std::string> lines) {
  for (std::string& line : lines) line = escape_for_terminal(line);
  return lines;
}

std::vector<std::string> quantization_lines(const Checkpoint& checkpoint) {
  if (!checkpoint.quantization) return {};
  const Quantization& found = *checkpoint.quantization;
  std::string line = escape_for_terminal(found.scheme);
  if (found.bits) line += fmt::format(", {}", plural(*found.bits, "bit"));
  if (found.group_size) line += fmt::format(", groups of {}", *found.group_size);
  line += fmt::format(": {} in {} ({})", plural(found.modules, "weight"), plural(found.parts.size(), "part"),
                      escape_for_terminal(found.evidence));
  return {line, "its parts can be copied, not cast, merged or quantized"};
}

void write_text(Session& session, const Checkpoint& checkpoint, const Summary& summary, const TrainingParts& training) {
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
  text.list("dtypes", dtype_lines(screen, summary));
  text.list("model", model_lines(screen, checkpoint));
  text.list("quantized", quantization_lines(checkpoint));
  text.list("dangerous", dangerous_lines(checkpoint));
  text.list("metadata", metadata_lines(session, checkpoint));
  text.list("roots", root_lines(session, checkpoint));
  text.list("training", escaped(training_lines(training)));
  text.list("values", value_lines(session, checkpoint));
  text.list("tied", tied_lines(summary));
  if (summary.wasted_bytes > 0) text.line("wasted", screen.bytes_in_words(summary.wasted_bytes));
  text.list("notes", note_lines(checkpoint));
  if (summary.patterns.empty()) return;
  session.out.write('\n');
  write_pattern_table(session, summary);
}

int run_info(Session& session, const std::string& target) {
  Checkpoint checkpoint = open_to_look(session, target);
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
  session.json ? write_json(session, checkpoint, summary, training)
               : write_text(session, checkpoint, summary, training);
  return 0;
}

}  // namespace

void add_info(Command& verb, Session& session) {
  auto target = std::make_shared<std::string>();
  add_target(verb, *target);
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples = "  ballast info model.safetensors\n  ballast info model/ --json | jq .parameters\n";
  verb.run = [target, &session] { return run_info(session, *target); };
}

}  // namespace ballast::cli
