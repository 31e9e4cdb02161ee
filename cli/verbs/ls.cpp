// ls: lists one tensor a line, or a tree of their prefixes.
#include <array>
#include <memory>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/listing.hpp>
#include <ballast/text.hpp>
#include <ballast/tree.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../place.hpp"
#include "../table.hpp"
#include "../tree_text.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
  ListOptions list;
  bool has_numel = false;
  bool tree = false;
  std::uint64_t depth = 0;

  bool wants_tree() const { return tree || depth > 0; }
  TreeOptions tree_options() const { return {list.sort.value_or(SortBy::name), list.reverse, depth}; }
};

SortBy sort_argument(const std::string& text) {
  for (std::size_t i = 0; i < kSortNames.size(); ++i) {
    if (kSortNames[i] == text) return static_cast<SortBy>(i);
  }
  throw Error(Errc::invalid_argument, fmt::format("--sort: there is no order \"{}\"", text))
      .hint(fmt::format("one of {}", fmt::join(kSortNames, ", ")));
}

// "F16,BF16"
std::vector<std::string> dtypes_argument(std::string_view text) {
  std::vector<std::string> dtypes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    if (auto dtype = parse_listed_dtype(one)) {
      dtypes.push_back(*std::move(dtype));
    } else {
      std::vector<std::string_view> known;
      for (const DTypeInfo& each : all_dtypes()) known.push_back(each.name);
      throw Error(Errc::invalid_argument, fmt::format("--dtype: there is no dtype \"{}\"", one))
          .hint(fmt::format("one or several of {}, with commas between them", fmt::join(known, " ")));
    }
    begin = end + 1;
  }
  return dtypes;
}

// A word that is no name of a tensor is taken as a part of names.
void take_parts(const Session& session, const Checkpoint& checkpoint, std::vector<std::string>& globs) {
  for (std::string& glob : globs) {
    const auto part = glob_of_part(checkpoint, glob);
    if (!part) continue;
    session.note(
        fmt::format("no tensor is called \"{}\"; these are all that have it in their names, '{}'", glob, *part));
    glob = *part;
  }
}

[[noreturn]] void refuse_empty(const Checkpoint& checkpoint, const ListOptions& options) {
  std::vector<std::string> wanted;
  if (!options.dtypes.empty()) wanted.push_back(fmt::format("dtype {}", fmt::join(options.dtypes, " or ")));
  if (options.min_bytes > 0) wanted.push_back(fmt::format("at least {}", format_bytes(options.min_bytes)));
  if (options.max_bytes != ListOptions().max_bytes)
    wanted.push_back(fmt::format("at most {}", format_bytes(options.max_bytes)));
  std::vector<std::string> dtypes;
  std::uint64_t smallest = options.max_bytes, largest = 0;
  for (const std::size_t i : list_tensors(checkpoint, {.sort = SortBy::dtype})) {
    const std::string dtype = describe_tensor(checkpoint, i).dtype;
    const std::uint64_t bytes = checkpoint.tensors[i].tensor.nbytes();
    if (dtypes.empty() || dtypes.back() != dtype) dtypes.push_back(dtype);
    smallest = dtypes.size() == 1 && largest == 0 ? bytes : std::min(smallest, bytes);
    largest = std::max(largest, bytes);
  }
  throw Error(Errc::not_found, fmt::format("no tensor has {}", fmt::join(wanted, " and ")))
      .in(checkpoint.target)
      .hint(fmt::format("{} of {}, from {} to {}", plural(checkpoint.size(), "tensor"), fmt::join(dtypes, ", "),
                        format_bytes(smallest), format_bytes(largest)));
}

// The names of the parts of sparse, quantized and nested tensors, with the layout that each part belongs to.
std::unordered_map<std::string_view, std::string_view> layouts_of(const Checkpoint& checkpoint) {
  std::unordered_map<std::string_view, std::string_view> layouts;
  for (const Composite& composite : checkpoint.composites) {
    for (const std::string& part : composite.parts) layouts.emplace(part, composite.layout);
  }
  return layouts;
}

void write_node(JsonWriter& json, const TreeNode& node, std::uint64_t all_bytes) {
  json.begin_object();
  json.field("path", node.path);
  json.field("name", node.name());
  json.field("depth", node.depth);
  json.field("children", node.children);
  json.field("prefixes", node.folded);
  json.field("tensors", node.tensors);
  json.field("parameters", node.parameters);
  json.field("bytes", node.bytes);
  json.field("share", share_of(node.bytes, all_bytes));
  if (node.shared_bytes > 0) json.field("shared_bytes", node.shared_bytes);
  if (!node.dtype.empty()) {
    json.field("dtype", node.dtype);
    json.array_field("shape", node.shape);
  }
  json.end();
}

void write_tree_json(JsonWriter& json, const Tree& tree) {
  json.key("total");
  json.begin_object();
  json.field("tensors", tree.totals.tensors);
  json.field("parameters", tree.totals.parameters);
  json.field("bytes", tree.totals.bytes);
  json.end();
  json.key("tree");
  json.begin_array(JsonWriter::Layout::lines);
  for (const TreeNode& node : tree.nodes) write_node(json, node, tree.totals.bytes);
  json.end();
}

void write_json(Session& session, const Checkpoint& checkpoint, const Arguments& arguments,
                std::span<const std::size_t> numbers) {
  JsonWriter json(session.out, "ballast.ls/1");
  json.field("target", checkpoint.target);
  json.field("format", name(checkpoint.format));
  json.field("shards", checkpoint.shards);
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  Places places(checkpoint);
  const auto layouts = layouts_of(checkpoint);
  for (const std::size_t i : numbers) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    const TensorDescription description = describe_tensor(checkpoint, i);
    const auto place = places.of(tensor);
    json.begin_object();
    json.field("name", name);
    json.field("dtype", description.dtype);
    json.array_field("shape", description.shape);
    json.field("numel", description.numel());
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
  if (arguments.wants_tree()) write_tree_json(json, tree_of(checkpoint, numbers, arguments.tree_options()));
  json.finish();
}

void write_text(Session& session, const Checkpoint& checkpoint, std::span<const std::size_t> numbers, bool has_numel) {
  std::vector<Table::Column> columns = {{}, {.color = Color::cyan, .drop = 1}, {.drop = 2}};
  if (has_numel) columns.push_back({.right = true, .drop = 3});
  columns.push_back({.right = true, .color = Color::green});
  columns.push_back({.color = Color::dim, .drop = 4});
  Table table(session.out, session.screen, columns);
  std::array<std::string, 6> cells;  // reused for every row: with a hundred thousand rows, allocations can be measured
  const std::size_t bytes = has_numel ? 4 : 3;
  for (const std::size_t i : numbers) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    TensorDescription description = describe_tensor(checkpoint, i);
    cells[0].clear();
    append_escaped(cells[0], name);
    cells[1] = std::move(description.dtype);
    cells[2] = to_string(description.shape);
    if (has_numel) cells[3] = session.screen.count(description.numel());
    cells[bytes] = session.screen.bytes(tensor.nbytes());
    const auto alias = checkpoint.aliases.find(name);
    const bool is_alias = alias != checkpoint.aliases.end();
    if (is_alias) cells[bytes + 1] = "= " + escape_for_terminal(alias->second);
    table.row(std::span(cells).first(is_alias ? bytes + 2 : bytes + 1));
  }
  table.finish();
}

// What is listed, and of how much: "3 of 12 tensors, 48 of 4 168 parameters, 192 B of 8.58 kB".
std::string total_line(const Terminal& screen, const TensorTotals& listed, const TensorTotals& all) {
  if (listed.tensors == all.tensors) {
    return fmt::format("{}, {}, {}", screen.plural(all.tensors, "tensor"), screen.plural(all.parameters, "parameter"),
                       screen.bytes(all.bytes));
  }
  return fmt::format("{} of {}, {} of {}, {} of {}", screen.count(listed.tensors), screen.plural(all.tensors, "tensor"),
                     screen.count(listed.parameters), screen.plural(all.parameters, "parameter"),
                     screen.bytes(listed.bytes), screen.bytes(all.bytes));
}

int run_ls(Session& session, Arguments& arguments) {
  if (arguments.wants_tree() && arguments.list.top > 0) {
    throw Error(Errc::invalid_argument, "--top is for lists, not for a tree")
        .hint("--depth cuts a tree, and --min-size leaves small tensors out of it");
  }
  Checkpoint checkpoint = open_to_look(session, arguments.target);
  say_notes(session, checkpoint);
  // A program gets rows and nothing else; the total is for people.
  const bool says_total = session.screen.interactive && !session.json && !session.quiet;
  const TensorTotals all = says_total ? add_up(checkpoint) : TensorTotals();
  take_parts(session, checkpoint, arguments.globs);
  take_parts(session, checkpoint, session.selection.include);
  checkpoint = select_tensors(session, std::move(checkpoint), arguments.globs);

  if (!session.json && !arguments.wants_tree() && !arguments.list.sort && arguments.list.top == 0)
    arguments.list.sort = SortBy::name;
  const std::vector<std::size_t> numbers = list_tensors(checkpoint, arguments.list);
  if (numbers.empty() && checkpoint.size() > 0) refuse_empty(checkpoint, arguments.list);
  if (session.json) {
    write_json(session, checkpoint, arguments, numbers);
  } else if (arguments.wants_tree()) {
    write_tree(session, checkpoint, numbers, arguments.tree_options());
  } else {
    write_text(session, checkpoint, numbers, arguments.has_numel);
  }
  if (!says_total) return 0;
  session.out.flush();
  session.say(total_line(session.screen, add_up(checkpoint, numbers), all));
  return 0;
}

void add_list_options(Command& verb, const std::shared_ptr<Arguments>& arguments) {
  verb.flag("-l,--long", &arguments->has_numel, "a column with the number of elements, too");
  verb.option(
      "--sort", "KEY", [arguments](const std::string& text) { arguments->list.sort = sort_argument(text); },
      "by bytes or numel, largest first; by name, dtype, shape or file, ascending");
  verb.flag("--reverse", &arguments->list.reverse, "the other way round");
  verb.option("--top", "N", &arguments->list.top, "only the first N; the largest, unless there is --sort");
  verb.option(
      "--dtype", "DTYPES",
      [arguments](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          for (std::string& dtype : dtypes_argument(text)) arguments->list.dtypes.push_back(std::move(dtype));
        }
      },
      "only tensors of these dtypes: F16,BF16");
  verb.option(
      "--min-size", "SIZE",
      [arguments](const std::string& text) { arguments->list.min_bytes = bytes_argument("--min-size", text); },
      "only tensors of at least so many bytes: 10MB, 1GiB, 512K");
  verb.option(
      "--max-size", "SIZE",
      [arguments](const std::string& text) { arguments->list.max_bytes = bytes_argument("--max-size", text); },
      "only tensors of at most so many bytes");
  verb.flag("--tree", &arguments->tree, "what lies under each prefix of names, with layers of one kind folded");
  verb.option("--depth", "N", &arguments->depth, "of the tree, only so many levels; implies --tree");
}

}  // namespace

void add_ls(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose full name matches one of these; or a part of names");
  add_list_options(verb, arguments);
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples =
      "  ballast ls model/\n"
      "  ballast ls model.safetensors '*.weight' --exclude '*norm*'\n"
      "  ballast ls model.safetensors 'model.layers.{0..3,31}.*' --top 10\n"
      "  ballast ls model.safetensors --tree --depth 2 --sort bytes\n";
  verb.run = [arguments, &session] { return run_ls(session, *arguments); };
}

}  // namespace ballast::cli
