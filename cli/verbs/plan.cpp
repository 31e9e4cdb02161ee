// plan: shows which part of which tensor each rank of a parallel model needs.
#include <ballast/rank_plan.hpp>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target, rules;
  unsigned ranks = 0;
  std::optional<std::string> rank_text;
  std::optional<unsigned> rank;
};

bool is_for(const RankPart& part, const Arguments& arguments) {
  return !arguments.rank || std::ranges::find(part.ranks, *arguments.rank) != part.ranks.end();
}

void write_part(JsonWriter& json, const RankPart& part) {
  json.begin_object();
  json.array_field("ranks", part.ranks);
  if (part.cut) {
    json.field("axis", part.cut->axis);
    json.field("first", part.cut->first);
    json.field("count", part.cut->count);
  }
  json.array_field("shape", part.shape);
  json.field("bytes", part.bytes);
  json.key("ranges");
  json.begin_array();
  for (const FileRange& range : part.ranges) {
    json.begin_object();
    json.field("file", range.file);
    json.field("offset", range.offset);
    json.field("size", range.size);
    if (range.count != 1) {
      json.field("count", range.count);
      json.field("stride", range.stride);
    }
    json.end();
  }
  json.end();
  json.end();
}

void write_json(Session& session, const RankPlan& plan, const Arguments& arguments) {
  JsonWriter json(session.out, "ballast.plan/1");
  json.field("ranks", plan.ranks);
  json.key("bytes");
  json.begin_array();
  for (unsigned rank = 0; rank < plan.ranks; ++rank) json.value(plan.bytes_of_rank(rank));
  json.end();
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  for (const RankedTensor& tensor : plan.tensors) {
    const auto is_shown = [&](const RankPart& part) { return is_for(part, arguments); };
    if (std::ranges::none_of(tensor.parts, is_shown)) continue;
    json.begin_object();
    json.field("name", tensor.name);
    json.field("dtype", name(tensor.dtype));
    json.array_field("shape", tensor.shape);
    json.field("split", name(tensor.split));
    json.field("plain", tensor.is_plain);
    json.key("parts");
    json.begin_array();
    for (const RankPart& part : tensor.parts) {
      if (is_shown(part)) write_part(json, part);
    }
    json.end();
    json.end();
  }
  json.end();
  json.finish();
}

// Writes a line for each rank; only programs need the ranges.
void write_text(Session& session, const RankPlan& plan, const Arguments& arguments) {
  Table table(session.out, session.screen,
              {{.color = Color::bold}, {.right = true}, {.right = true, .color = Color::green}});
  for (unsigned rank = 0; rank < plan.ranks; ++rank) {
    if (arguments.rank && *arguments.rank != rank) continue;
    table.row({fmt::format("rank {}", rank), session.screen.plural(plan.rank(rank).size(), "tensor"),
               session.screen.bytes(plan.bytes_of_rank(rank))});
  }
  table.finish();
}

unsigned rank_argument(const std::string& text) {
  unsigned rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc() && end == text.data() + text.size()) return rank;
  throw Error(Errc::invalid_argument, fmt::format("--rank: \"{}\" is no number of a rank", text));
}

// Rules are for the whole model, whatever part of it is selected.
void say_unused(const Session& session, const RankPlan& plan) {
  for (const std::string& match : plan.unused)
    session.note(
        fmt::format("the rule \"{}\" cuts nothing: no tensor matches it, or an earlier rule comes first", match));
}

int run_plan(Session& session, Arguments& arguments) {
  if (arguments.ranks == 0) throw Error(Errc::invalid_argument, "nothing says for how many ranks").hint("--ranks 8");
  if (arguments.rank_text) arguments.rank = rank_argument(*arguments.rank_text);
  const std::vector<RankRule> rules =
      arguments.rules.empty() ? std::vector<RankRule>() : load_rank_rules(arguments.rules);
  const Checkpoint checkpoint = open_data(session, arguments.target);
  say_notes(session, checkpoint);
  const RankPlan plan = plan_ranks(select_tensors(session, checkpoint), arguments.ranks, rules);
  if (!plan.unused.empty()) say_unused(session, plan_ranks(checkpoint, arguments.ranks, rules));
  if (arguments.rank) static_cast<void>(plan.rank(*arguments.rank));  // throws if there is no such rank
  session.json ? write_json(session, plan, arguments) : write_text(session, plan, arguments);
  return 0;
}

}  // namespace

void add_plan(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.option("--ranks", "N", &arguments->ranks, "how many there are; must be given");
  verb.option("--rules", "FILE", &arguments->rules, "how tensors are cut: see docs/ranks.md; without it none is");
  verb.option("--rank", "R", &arguments->rank_text, "only what this one needs, counted from 0");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples = R"(  ballast plan model/ --ranks 8 --rules llama.json
  ballast plan model/ --ranks 8 --rules llama.json --rank 3 --json
)";
  verb.run = [arguments, &session] { return run_plan(session, *arguments); };
}

}  // namespace ballast::cli
