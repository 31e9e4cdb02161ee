// ls: lists one tensor a line.
#include <array>
#include <memory>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../place.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
};

// The names of the parts of sparse, quantized and nested tensors, with the layout that each part belongs to.
std::unordered_map<std::string_view, std::string_view> layouts_of(const Checkpoint& checkpoint) {
  std::unordered_map<std::string_view, std::string_view> layouts;
  for (const Composite& composite : checkpoint.composites) {
    for (const std::string& part : composite.parts) layouts.emplace(part, composite.layout);
  }
  return layouts;
}

// The name of a ggml type that is newer than this program.
std::string unknown_name(const UnknownGgml& type) { return fmt::format("GGML_{}", type.id); }

void write_json(Session& session, const Checkpoint& checkpoint) {
  JsonWriter json(session.out, "ballast.ls/1");
  json.field("target", checkpoint.target);
  json.field("format", name(checkpoint.format));
  json.field("shards", checkpoint.shards);
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  Places places(checkpoint);
  const auto layouts = layouts_of(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    const auto place = places.of(tensor);
    json.begin_object();
    json.field("name", name);
    const auto unknown = checkpoint.unknown_ggml.find(name);
    const bool is_known = unknown == checkpoint.unknown_ggml.end();
    is_known ? json.field("dtype", ballast::name(tensor.dtype())) : json.field("dtype", unknown_name(unknown->second));
    json.array_field("shape", is_known ? tensor.shape() : unknown->second.shape);
    json.field("bytes", tensor.nbytes());
    const auto layout = layouts.find(name);
    json.field("layout", layout == layouts.end() ? "strided" : layout->second);
    place ? json.field("file", place->file) : json.field("file", nullptr);
    place && place->offset ? json.field("offset", *place->offset) : json.field("offset", nullptr);
    json.field("contiguous", tensor.is_contiguous());
    json.field("data", tensor.has_data());
    if (const auto alias = checkpoint.aliases.find(name); alias != checkpoint.aliases.end())
      json.field("alias_of", alias->second);
    json.end();
  }
  json.end();
  json.finish();
}

void write_text(Session& session, const Checkpoint& checkpoint) {
  Table table(session.out, session.screen,
              {{},
               {.color = Color::cyan, .drop = 1},
               {.drop = 2},
               {.right = true, .color = Color::green},
               {.color = Color::dim, .drop = 3}});
  std::array<std::string, 5> cells;  // reused for every row: with a hundred thousand rows, allocations can be measured
  for (const std::size_t i : natural_order(checkpoint)) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    const auto unknown = checkpoint.unknown_ggml.find(name);
    const bool is_known = unknown == checkpoint.unknown_ggml.end();
    cells[0].clear();
    append_escaped(cells[0], name);
    is_known ? cells[1].assign(ballast::name(tensor.dtype())) : cells[1] = unknown_name(unknown->second);
    cells[2] = to_string(is_known ? tensor.shape() : unknown->second.shape);
    cells[3] = session.screen.bytes(tensor.nbytes());
    const auto alias = checkpoint.aliases.find(name);
    const bool is_alias = alias != checkpoint.aliases.end();
    if (is_alias) cells[4] = "= " + escape_for_terminal(alias->second);
    table.row(std::span(cells).first(is_alias ? 5 : 4));
  }
  table.finish();
}

int run_ls(Session& session, const Arguments& arguments) {
  Checkpoint checkpoint = open_to_look(session, arguments.target);
  say_notes(session, checkpoint);
  checkpoint = select_tensors(session, std::move(checkpoint), arguments.globs);
  session.json ? write_json(session, checkpoint) : write_text(session, checkpoint);
  return 0;
}

}  // namespace

void add_ls(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose whole name matches one of these");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples = "  ballast ls model/\n  ballast ls model.safetensors '*.weight' --exclude '*norm*'\n";
  verb.run = [arguments, &session] { return run_ls(session, *arguments); };
}

}  // namespace ballast::cli
