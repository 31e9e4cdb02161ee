// ls: lists one tensor a line, or a tree of their prefixes.
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/listing.hpp>
#include <ballast/text.hpp>
#include <ballast/tree.hpp>

#include "../options.hpp"
#include "../tree_text.hpp"
#include "ls_documents.hpp"
#include "ls_duplicates.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
  ListOptions list;
  bool has_numel = false;
  bool tree = false, duplicates = false;
  std::uint64_t depth = kNotGiven;

  static constexpr std::uint64_t kNotGiven = ~std::uint64_t{0};
  bool wants_tree() const { return tree || depth != kNotGiven; }
  TreeOptions tree_options() const {
    return {list.sort.value_or(SortBy::name), list.reverse, depth == kNotGiven ? 0 : depth};
  }
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

void check_together(const Arguments& arguments) {
  const ListOptions& list = arguments.list;
  if (arguments.wants_tree() && list.top > 0) {
    throw Error(Errc::invalid_argument, "--top is for lists, not for a tree")
        .hint("--depth cuts a tree, and --min-size leaves small tensors out of it");
  }
  if (arguments.wants_tree() && arguments.has_numel)
    throw Error(Errc::invalid_argument, "--long is for lists: a tree always has the number of parameters");
  if (arguments.duplicates &&
      (arguments.wants_tree() || list.top > 0 || list.sort || list.reverse || arguments.has_numel)) {
    throw Error(Errc::invalid_argument, "--duplicates has groups of its own: no tree, no other order, no columns")
        .hint("--min-size leaves small tensors out");
  }
}

Checkpoint selected(Session& session, Arguments& arguments, Checkpoint checkpoint) {
  take_parts(session, checkpoint, arguments.globs);
  take_parts(session, checkpoint, session.selection.include);
  return select_tensors(session, std::move(checkpoint), arguments.globs);
}

void write(Session& session, const Listing& listing) {
  if (session.json)
    write_list_json(session, listing);
  else if (listing.tree)
    write_tree(session, listing.checkpoint, listing.numbers, *listing.tree);
  else
    write_list_text(session, listing);
  session.out.flush();  // before what is said on stderr
}

int run_ls(Session& session, Arguments& arguments) {
  check_together(arguments);
  Checkpoint checkpoint =
      arguments.duplicates ? open_data(session, arguments.target) : open_to_look(session, arguments.target);
  say_notes(session, checkpoint);
  // A program gets rows and nothing else; the total is for people.
  const bool says_total = session.screen.interactive && !session.json && !session.quiet && !arguments.duplicates;
  const TensorTotals all = says_total ? add_up(checkpoint) : TensorTotals();
  checkpoint = selected(session, arguments, std::move(checkpoint));

  const bool is_list = !session.json && !arguments.wants_tree() && !arguments.duplicates;
  if (is_list && !arguments.list.sort && arguments.list.top == 0) arguments.list.sort = SortBy::name;
  const std::vector<std::size_t> numbers = list_tensors(checkpoint, arguments.list);
  if (numbers.empty() && checkpoint.size() > 0) refuse_empty(checkpoint, arguments.list);
  if (arguments.duplicates) return list_duplicates(session, checkpoint, numbers);
  Listing listing{checkpoint, numbers, arguments.has_numel};
  if (arguments.wants_tree()) listing.tree = arguments.tree_options();
  write(session, listing);
  if (says_total) session.say(total_line(session.screen, add_up(checkpoint, numbers), all));
  return 0;
}

void add_list_options(Command& verb, Session& session, const std::shared_ptr<Arguments>& arguments) {
  verb.group("Which tensors");
  add_selection_options(verb, session);
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
  verb.flag("--duplicates", &arguments->duplicates, "only tensors with the bytes of another one, in groups");
  verb.group("In which order");
  verb.option(
      "--sort", "KEY", [arguments](const std::string& text) { arguments->list.sort = sort_argument(text); },
      "by bytes or numel, largest first; by name, dtype, shape or file, ascending");
  verb.flag("--reverse", &arguments->list.reverse, "the other way round");
  verb.option("--top", "N", &arguments->list.top, "only the first N, 0 is all; the largest, unless there is --sort");
  verb.group("What is shown");
  verb.flag("-l,--long", &arguments->has_numel, "a column with the number of elements, too");
  verb.flag("--tree", &arguments->tree, "what lies under each prefix of names, with layers of one kind folded");
  verb.option("--depth", "N", &arguments->depth, "of the tree, only so many levels, 0 is all; implies --tree");
  add_json_option(verb, session);
}

}  // namespace

void add_ls(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose full name matches one of these; or a part of names");
  add_list_options(verb, session, arguments);
  verb.examples =
      "  ballast ls model/\n"
      "  ballast ls model.safetensors '*.weight' --exclude '*norm*'\n"
      "  ballast ls model.safetensors 'model.layers.{0..3,31}.*' --top 10\n"
      "  ballast ls model.safetensors --tree --depth 2 --sort bytes\n"
      "  ballast ls model/ --duplicates --min-size 4K\n";
  verb.run = [arguments, &session] { return run_ls(session, *arguments); };
}

}  // namespace ballast::cli
