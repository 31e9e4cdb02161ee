// convert: open, select, rename, cast; then a plan, and its execution.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <ballast/densify.hpp>
#include <ballast/error.hpp>
#include <ballast/names.hpp>
#include <ballast/save.hpp>
#include <ballast/text.hpp>
#include <ballast/transform.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string in, out;
  std::vector<std::string> renames, metadata, fields, removed_fields;
  std::string dtype, max_shard_size, memory;
  std::string names;  // "hf" or "gguf"
  NameOptions name_options;
  bool dense = false, raw = false, dry_run = false;
};

NameStyle name_style(const std::string& text) {
  if (text == "hf") return NameStyle::huggingface;
  if (text == "gguf") return NameStyle::gguf;
  throw Error(Errc::invalid_argument, fmt::format("--names: there are no names of the style \"{}\"", text))
      .hint("hf for Hugging Face's, gguf for llama.cpp's");
}

Checkpoint wanted_checkpoint(const Session& session, const Arguments& arguments) {
  Checkpoint checkpoint = open_target(session, arguments.in);
  say_notes(session, checkpoint);
  checkpoint = select_tensors(session, std::move(checkpoint));

  std::vector<RenameRule> rules;
  for (const auto& text : arguments.renames) rules.push_back(parse_rename(text));
  if (!rules.empty()) checkpoint = rename(std::move(checkpoint), rules);
  const std::size_t said = checkpoint.notes.size();
  if (!arguments.names.empty()) {
    const NameStyle style = name_style(arguments.names);
    // What is undone is undone exactly: on the values that blocks stand for, before they are rounded again.
    if (style == NameStyle::huggingface && !arguments.dtype.empty())
      checkpoint = cast(std::move(checkpoint), DType::f32);
    checkpoint = to_names(std::move(checkpoint), style, arguments.name_options);
  }
  if (arguments.dense) checkpoint = densify(std::move(checkpoint), session.limits);
  if (!arguments.dtype.empty()) checkpoint = cast(std::move(checkpoint), dtype_argument("--dtype", arguments.dtype));
  for (std::size_t i = said; i < checkpoint.notes.size(); ++i) session.note(checkpoint.notes[i].text);
  for (const auto& text : arguments.metadata) {
    auto [key, value] = split_assignment(text, "--metadata author=me");
    checkpoint.metadata[std::move(key)] = std::move(value);
  }
  for (const auto& text : arguments.fields) {
    const FieldAssignment field = parse_field_assignment(text);
    checkpoint.fields.set_from_text(field.key, field.text, field.type);
  }
  for (const auto& key : arguments.removed_fields) {
    if (!checkpoint.fields.remove(key)) throw Error(Errc::not_found, fmt::format("no metadata called \"{}\"", key));
  }
  return checkpoint;
}

SaveOptions save_options(const Session& session, const Arguments& arguments) {
  SaveOptions options = session.save_options();
  if (!arguments.max_shard_size.empty())
    options.max_shard_bytes = bytes_argument("--max-shard-size", arguments.max_shard_size);
  options.raw_blocks = arguments.raw;
  if (!arguments.memory.empty()) options.memory_bytes = bytes_argument("--memory", arguments.memory);
  return options;
}

std::uint64_t tensors_in(const SavePlan& plan) {
  std::uint64_t count = 0;
  for (const auto& file : plan.files) count += file.tensors;
  return count;
}

void write_json(Session& session, const SavePlan& plan, const SaveReport* report) {
  JsonWriter json(session.out, "ballast.convert/1");
  json.field("dry_run", report == nullptr);
  json.key("files");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& file : plan.files) {
    json.begin_object();
    json.field("path", file.path);
    json.field("bytes", file.size_bytes);
    json.field("tensors", file.tensors);
    json.end();
  }
  json.end();
  json.field("tensors", tensors_in(plan));
  json.field("data_bytes", plan.data_bytes);
  json.field("total_bytes", plan.total_bytes());
  json.field("memory_bytes", plan.memory_bytes);
  if (report != nullptr) json.field("seconds", report->seconds);
  json.finish();
}

void write_plan(Session& session, const SavePlan& plan) {
  const bool for_people = session.screen.interactive;
  Table table(session.out, session.screen, {{}, {.right = true}, {.right = true, .color = Color::green}});
  for (const auto& file : plan.files) {
    table.row({escape_for_terminal(file.path), file.path.ends_with(".json") ? "index" : plural(file.tensors, "tensor"),
               for_people ? format_bytes(file.size_bytes) : std::to_string(file.size_bytes)});
  }
  table.finish();
  session.out.flush();  // before what is said about it
  session.say(fmt::format("would write {} in {}, {}, with {} of buffers", plural(tensors_in(plan), "tensor"),
                          plural(plan.files.size(), "file"), format_bytes(plan.total_bytes()),
                          format_bytes(plan.memory_bytes)));
}

void say_written(const Session& session, const SavePlan& plan, const SaveReport& report) {
  const std::string& first = plan.files.at(0).path;
  const std::string folder = std::filesystem::path(first).parent_path().string();
  const std::string where = plan.files.size() == 1 ? first
                                                   : fmt::format("{} in {}", plural(plan.files.size(), "file"),
                                                                 folder.empty() ? "." : folder);
  session.say(fmt::format("wrote {}: {}, {} in {}", where, plural(tensors_in(plan), "tensor"),
                          format_bytes(plan.total_bytes()), format_duration(report.seconds)));
}

// The folder that "NAME/" asks for: made when it is not there, and gone again if nothing could be written into it.
class OutputFolder {
 public:
  explicit OutputFolder(const std::string& path) : path_(path) {
    if (path.ends_with('/')) created_ = std::filesystem::create_directory(path_, ignored_);
  }
  ~OutputFolder() {
    if (created_) std::filesystem::remove(path_, ignored_);
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  void keep() { created_ = false; }

 private:
  std::filesystem::path path_;
  std::error_code ignored_;  // what is wrong with the folder, the save says better
  bool created_ = false;
};

// Most who convert a training checkpoint want the model in it.
void suggest_root(const Session& session, const Checkpoint& checkpoint) {
  if (checkpoint.roots.empty() || checkpoint.roots[0].tensors != checkpoint.size()) return;
  const std::string& root = checkpoint.roots[0].path;
  session.note(fmt::format("all tensors lie under \"{}\"; --root {} takes them without that prefix", root, root));
}

int run_convert(Session& session, const Arguments& arguments) {
  if (arguments.out == "-") {
    throw Error(Errc::invalid_argument, "a checkpoint cannot be written to standard output")
        .hint("name a file or a folder; ballast cat T NAME -o - streams one tensor");
  }
  const Checkpoint checkpoint = wanted_checkpoint(session, arguments);
  suggest_root(session, checkpoint);
  SaveOptions options = save_options(session, arguments);
  const SavePlan plan = plan_save(checkpoint, arguments.out, options);
  if (arguments.dry_run) {
    for (const Note& note : plan.notes) session.note(note.text);
    session.json ? write_json(session, plan, nullptr) : write_plan(session, plan);
    return 0;
  }

  auto bar = session.progress_bar();
  options.progress = bar.callback();
  OutputFolder folder(arguments.out);
  const SaveReport report = execute(plan, options);
  folder.keep();
  bar.clear();
  for (const Note& note : report.notes) session.note(note.where.empty() ? note.text : note.where + ": " + note.text);
  if (session.json) write_json(session, plan, &report);
  say_written(session, plan, report);
  return 0;
}

}  // namespace

Run add_convert(CLI::App& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.add_option("IN", arguments->in, "a file, a folder, an …index.json, or - for standard input")->required();
  verb.add_option("OUT", arguments->out,
                  "a .safetensors, .pt, .pth, .bin, .ckpt or .gguf file, or a folder (one that is there, or NAME/)")
      ->required();
  add_selection_options(verb, session);
  add_repeated_option(verb, "--rename", arguments->renames, R"(replace in every name, \1 for groups; in order)")
      ->type_name("REGEX=TEMPLATE");
  verb.add_option("--names", arguments->names,
                  "names (and what goes with them) as Hugging Face or llama.cpp has them: hf, gguf")
      ->type_name("STYLE");
  verb.add_option("--architecture", arguments->name_options.architecture,
                  "for --names, where the file does not say it: llama")
      ->type_name("NAME");
  verb.add_option("--heads", arguments->name_options.head_count, "for --names: heads of attention")->type_name("N");
  verb.add_option("--kv-heads", arguments->name_options.head_count_kv, "for --names: heads of keys and values")
      ->type_name("N");
  verb.add_option("--dtype", arguments->dtype,
                  "cast floating tensors; decode ggml's blocks; Q4_K and its kin encode into them")
      ->type_name("DTYPE");
  verb.add_flag("--dense", arguments->dense, "sparse tensors as dense ones, quantized ones as their values");
  verb.add_flag("--raw", arguments->raw, "ggml's blocks into safetensors as bytes, to become the same GGUF again");
  verb.add_option("--max-shard-size", arguments->max_shard_size, "split into shards of at most this much")
      ->type_name("SIZE");
  add_repeated_option(verb, "--metadata", arguments->metadata, "set metadata in what is written")
      ->type_name("KEY=VALUE");
  add_repeated_option(verb, "--meta", arguments->fields,
                      "set typed metadata of a GGUF: general.name=Tiny, llama.block_count:u32=2")
      ->type_name("KEY[:TYPE]=VALUE");
  add_repeated_option(verb, "--remove-meta", arguments->removed_fields, "leave out metadata of a GGUF")
      ->type_name("KEY");
  verb.add_option("--memory", arguments->memory, "for all buffers together; 64MiB by default")->type_name("SIZE");
  verb.add_flag("--allow-dangerous", session.allow_dangerous, "go on although the file names something dangerous");
  verb.add_flag("--strict", session.strict, "refuse a source whose checksums are wrong, instead of a note");
  add_force_option(verb, session);
  verb.add_flag("--dry-run", arguments->dry_run, "show what would be written, and write nothing");
  add_sync_option(verb, session);
  add_json_option(verb, session);
  verb.footer(R"(  ballast convert model/ one.safetensors
  ballast convert model.safetensors half/ --dtype BF16 --max-shard-size 5GB
  ballast convert a.safetensors b.safetensors --rename '^model\.=' --exclude '*.bias'
)");
  return [arguments, &session] { return run_convert(session, *arguments); };
}

}  // namespace ballast::cli
