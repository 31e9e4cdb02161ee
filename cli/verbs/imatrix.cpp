// imatrix: shows what an importance matrix holds.
#include <ballast/importance.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "../info_text.hpp"
#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string file;
};

struct Spread {
  explicit Spread(const std::vector<float>& weights)
      : min(*std::ranges::min_element(weights)),
        max(*std::ranges::max_element(weights)),
        mean(std::reduce(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size())) {}

  double min, max, mean;
};

double unseen_share(const ImportanceEntry& entry) {
  return static_cast<double>(entry.unseen) / static_cast<double>(entry.matrices);
}

void write_json(Session& session, const ImportanceMatrix& matrix) {
  JsonWriter json(session.out, "ballast.imatrix/1");
  json.field("target", matrix.file());
  json.field("format", name(matrix.format()));
  json.array_field("datasets", matrix.datasets());
  json.field("chunks", matrix.chunks());
  json.field("chunk_size", matrix.chunk_size());
  json.key("entries");
  json.begin_array(JsonWriter::Layout::lines);
  for (const ImportanceEntry& entry : matrix.entries()) {
    const Spread spread(*entry.weights);
    json.begin_object();
    json.field("name", entry.name);
    json.field("columns", entry.columns);
    json.field("matrices", entry.matrices);
    json.field("unseen", unseen_share(entry));
    json.field("min", spread.min);
    json.field("max", spread.max);
    json.field("mean", spread.mean);
    json.end();
  }
  json.end();
  json.finish();
}

void write_entries(Session& session, const ImportanceMatrix& matrix) {
  const Terminal& screen = session.screen;
  std::vector<std::string_view> names;
  for (const ImportanceEntry& entry : matrix.entries()) names.push_back(entry.name);
  std::vector<Table::Column> layout = {{}};
  for (const unsigned drop : {5u, 4u, 1u, 2u, 3u, 0u}) layout.push_back({.right = true, .drop = drop});
  Table table(session.out, screen, layout);
  table.header({"tensor", "columns", "matrices", "unseen", "min", "max", "mean"});
  for (const std::size_t i : ballast::natural_order(names)) {
    const ImportanceEntry& entry = matrix.entries()[i];
    const Spread spread(*entry.weights);
    table.row({escape_for_terminal(entry.name), screen.count(entry.columns), screen.count(entry.matrices),
               screen.number(unseen_share(entry)), screen.number(spread.min), screen.number(spread.max),
               screen.number(spread.mean)});
  }
  table.finish();
}

void write_text(Session& session, const ImportanceMatrix& matrix) {
  InfoText text(session);
  text.line("target", escape_for_terminal(matrix.file()));
  text.line("format", name(matrix.format()));
  std::vector<std::string> datasets;
  for (const std::string& dataset : matrix.datasets()) datasets.push_back(escape_for_terminal(dataset));
  text.facts("datasets", datasets);
  if (matrix.chunks() > 0) {
    text.line("chunks", matrix.chunk_size() == 0 ? session.screen.count(matrix.chunks())
                                                 : fmt::format("{} of {}", session.screen.count(matrix.chunks()),
                                                               session.screen.plural(matrix.chunk_size(), "token")));
  }
  text.line("entries", session.screen.count(matrix.entries().size()));
  session.out.line("");
  write_entries(session, matrix);
}

int run_info(Session& session, const Arguments& arguments) {
  const auto matrix = ImportanceMatrix::open(arguments.file, {.open = session.open_options()});
  session.json ? write_json(session, *matrix) : write_text(session, *matrix);
  return 0;
}

}  // namespace

void add_imatrix(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();

  Command& info = verb.verb("info", "which text it was measured on, and what it says about each tensor");
  info.positional("FILE", &arguments->file, "what llama-imatrix wrote, of either format");
  add_json_option(info, session);
  info.examples = "  ballast imatrix info imatrix.gguf\n  ballast imatrix info imatrix.dat --json\n";
  info.run = [arguments, &session] { return run_info(session, *arguments); };
}

}  // namespace ballast::cli
