// meta: shows and edits metadata.
#include <ballast/metadata.hpp>

#include <memory>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/suggest.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::optional<std::string> key;
  std::vector<std::string> assignments, keys;
};

constexpr std::uint64_t kShownItems = 8;  // how many items of an array are shown, unless the user asks for all

// A string of safetensors or a typed value of GGUF, as text, in the file's order.
struct Entry {
  std::string key, value;
  const MetadataEntry* field = nullptr;
};

std::vector<Entry> entries_of(const Checkpoint& checkpoint, bool whole) {
  std::vector<Entry> entries;
  for (const auto& [key, value] : checkpoint.metadata) entries.push_back({key, value});
  const std::uint64_t items = whole ? UINT64_MAX : kShownItems;
  for (const MetadataEntry& field : checkpoint.typed_metadata)
    entries.push_back({std::string(field.key), text(field, items), &field});
  return entries;
}

std::vector<Entry> only(const std::vector<Entry>& entries, const Checkpoint& checkpoint, const std::string& key) {
  std::vector<std::string> keys;
  for (const Entry& entry : entries) {
    if (entry.key == key) return {entry};
    keys.push_back(entry.key);
  }
  const auto near = nearest(key, keys);
  throw Error(Errc::not_found, fmt::format("no metadata called \"{}\"", key))
      .about(key)
      .in(checkpoint.target)
      .hint(near ? fmt::format("did you mean {}?", *near) : Advice::mention(Remedy::meta_get) + " lists what there is");
}

void write_value(JsonWriter& json, const MetadataValue& value) {
  std::visit([&](const auto& held) { json.value(held); }, value.get());
}

// Numbers are written as numbers; an array is written as its first elements and its size.
void write_field(JsonWriter& json, const MetadataEntry& field, bool whole) {
  json.key(field.key);
  if (!field.is_array()) return write_value(json, field.value());
  json.begin_object();
  json.field("type", name(field.element_type));
  json.field("count", field.count);
  json.key("items");
  json.begin_array();
  std::uint64_t shown = 0;
  for (const MetadataValue item : field.items()) {
    if (!whole && shown++ == kShownItems) break;
    write_value(json, item);
  }
  json.end();
  json.end();
}

void write_json(Session& session, const Checkpoint& checkpoint, const std::vector<Entry>& entries, bool whole) {
  JsonWriter json(session.out, "ballast.meta/1");
  json.field("target", checkpoint.target);
  json.key("metadata");
  json.begin_object(JsonWriter::Layout::lines);
  for (const Entry& entry : entries)
    entry.field ? write_field(json, *entry.field, whole) : json.field(entry.key, entry.value);
  json.end();
  json.finish();
}

int run_get(Session& session, const Arguments& arguments) {
  const Checkpoint checkpoint = open_to_look(session, arguments.target);
  say_notes(session, checkpoint);
  // All of a long array is shown with -v, and to a program that asks for this key.
  const bool whole = session.verbose || (arguments.key && (session.json || !session.screen.interactive));
  std::vector<Entry> entries = entries_of(checkpoint, whole);
  if (arguments.key) entries = only(entries, checkpoint, *arguments.key);
  if (session.json) {
    write_json(session, checkpoint, entries, whole);
  } else if (arguments.key) {
    // A program gets the value unchanged; for a terminal it is escaped.
    const std::string& value = entries.front().value;
    session.out.line(session.screen.interactive ? escape_for_terminal(value) : value);
  } else {
    Table table(session.out, session.screen, {{.color = Color::cyan}, {.wraps = true}});
    for (const Entry& entry : entries) table.row({escape_for_terminal(entry.key), escape_for_terminal(entry.value)});
    table.finish();
  }
  return 0;
}

int apply(Session& session, const std::string& target, const MetadataEdit& edit) {
  if (target == "-") throw Error(Errc::invalid_argument, "standard input cannot be edited").hint("name a file");
  auto bar = session.progress_bar();
  SaveOptions options = session.save_options();
  options.overwrite = true;  // the user asked to edit this file
  options.progress = bar.callback();
  const MetadataEditReport report = edit_metadata(target, edit, options);
  bar.clear();

  if (session.json) {
    JsonWriter json(session.out, "ballast.meta/1");
    json.field("target", target);
    json.field("changed", report.changed);
    json.field("in_place", report.in_place);
    json.finish();
  }
  session.say(fmt::format("{}: {}", target,
                          !report.changed   ? "nothing to change"
                          : report.in_place ? "metadata edited in place"
                                            : "metadata edited, file rewritten"));
  return 0;
}

Error nothing_given(std::string_view what, std::string_view verb) {
  return Error(Errc::invalid_argument, fmt::format("no {} is given", what))
      .hint(fmt::format("ballast meta {} --help shows how it is used", verb));
}

int run_set(Session& session, const Arguments& arguments) {
  if (arguments.assignments.empty()) throw nothing_given("KEY=VALUE", "set");
  MetadataEdit edit;
  for (const auto& text : arguments.assignments) {
    auto [key, value] = split_assignment(with_text_of_file(session, text), "author=me");
    edit.set[std::move(key)] = std::move(value);
  }
  return apply(session, arguments.target, edit);
}

int run_unset(Session& session, const Arguments& arguments) {
  if (arguments.keys.empty()) throw nothing_given("KEY", "unset");
  return apply(session, arguments.target, {.set = {}, .unset = arguments.keys});
}

}  // namespace

void add_meta(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();

  Command& get = verb.verb("get", "all metadata, or the value of one key");
  add_target(get, arguments->target);
  get.positional("KEY", &arguments->key, "print only the value of this key");
  add_json_option(get, session);
  get.examples = "  ballast meta get model.safetensors\n  ballast meta get model.safetensors format\n";
  get.run = [arguments, &session] { return run_get(session, *arguments); };

  Command& set = verb.verb("set", "add or replace keys");
  set.positional("TARGET", &arguments->target, "a file");
  set.positional("KEY=VALUE", &arguments->assignments, "what to set");
  add_sync_option(set, session);
  add_json_option(set, session);
  set.examples = R"(  ballast meta set model.safetensors author='A. Author' license=mit card=@README.md
  ballast meta set model.gguf tokenizer.chat_template=@chat.jinja llama.context_length:u32=8192
  ballast meta set model.gguf 'general.tags:[string]=chat,tiny' 'general.languages=["en", "de"]'

KEY=@FILE sets the text of a file, and KEY=@@TEXT a text that begins with @.
The metadata of a GGUF have types: KEY:TYPE=VALUE, and KEY:[TYPE]=a,b,c or a JSON array for arrays.
A type is u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool or string; without one, a key keeps its own.
)";
  set.run = [arguments, &session] { return run_set(session, *arguments); };

  Command& unset = verb.verb("unset", "remove keys");
  unset.positional("TARGET", &arguments->target, "a file");
  unset.positional("KEY", &arguments->keys, "what to remove");
  add_sync_option(unset, session);
  add_json_option(unset, session);
  unset.examples = "  ballast meta unset model.safetensors author\n";
  unset.run = [arguments, &session] { return run_unset(session, *arguments); };
}

}  // namespace ballast::cli
