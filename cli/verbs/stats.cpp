// stats: shows statistics of the values.
#include <ballast/stats.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include "../histogram.hpp"
#include "../json_writer.hpp"
#include "../options.hpp"
#include "../table.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
  bool histogram = false;
  unsigned bins = 0;
};

struct TensorStats {
  std::string_view name;
  const Tensor* tensor;
  std::optional<Stats> stats;  // empty for dtypes without an order, and for tensors without data
};

constexpr std::size_t kFewestBins = 8, kSparklineBins = 24, kChartColumns = 72;
constexpr unsigned kMostBins = 65536;

// How many columns the screen has beside `taken` columns, but at least kFewestBins and at most `most`.
std::size_t room_beside(const Session& session, std::size_t taken, std::size_t most) {
  const std::size_t room = session.screen.width > taken ? session.screen.width - taken : 0;
  return std::clamp(room, kFewestBins, most);
}

std::size_t chart_columns(const Session& session, const Tensor& tensor) {
  return room_beside(session, chart_margin(session.screen, tensor.numel()) + 1, kChartColumns);
}

// Few values in many bins are noise: Rice's rule says how many bins the values can fill.
unsigned chart_bins(const Session& session, const Tensor& tensor) {
  const auto rice = static_cast<std::size_t>(std::ceil(2 * std::cbrt(static_cast<double>(tensor.numel()))));
  return static_cast<unsigned>(std::clamp(rice, kFewestBins, chart_columns(session, tensor)));
}

unsigned sparkline_bins(const Session& session, const Checkpoint& checkpoint) {
  if (!session.screen.interactive) return kSparklineBins;
  constexpr std::size_t kOtherColumns = 80;  // roughly: the columns from dtype to inf, with their gaps
  std::size_t names = 0;
  for (const auto& [name, tensor] : checkpoint) names = std::max(names, columns_of(name));
  return static_cast<unsigned>(room_beside(session, names + kOtherColumns, kSparklineBins));
}

std::vector<TensorStats> collect(const Session& session, const Checkpoint& checkpoint, unsigned bins) {
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : checkpoint) total += tensor.nbytes();

  auto bar = session.progress_bar();
  const StatsOptions options{
      .bins = bins, .threads = session.threads, .progress = bar.part_of(total), .limits = session.limits};
  std::vector<TensorStats> results;
  for (const auto& [name, tensor] : checkpoint) {
    results.push_back({name, &tensor, std::nullopt});
    try {
      if (tensor.has_data()) results.back().stats = stats(tensor, options);
    } catch (Error& error) {
      // If the only tensor has no statistics, the error is the answer; if some of many tensors have none, the table has
      // gaps.
      const bool is_answer = checkpoint.size() == 1 && !session.json;
      if (error.code() != Errc::unsupported || is_answer) throw error.in(checkpoint.target);
    }
    bar.finish_part(tensor.nbytes());
  }
  return results;
}

void write_json(Session& session, const Checkpoint& checkpoint, const std::vector<TensorStats>& results,
                bool with_histogram) {
  JsonWriter json(session.out, "ballast.stats/1");
  json.field("target", checkpoint.target);
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& [name, tensor, stats] : results) {
    json.begin_object();
    json.field("name", name);
    json.field("dtype", ballast::name(tensor->dtype()));
    json.array_field("shape", tensor->shape());
    json.field("supported", stats.has_value());
    if (stats) {
      json.field("count", stats->count);
      json.field("zeros", stats->zeros);
      json.field("nans", stats->nans);
      json.field("infinities", stats->infinities);
      for (const auto& [key, value] : {std::pair("min", stats->min), std::pair("max", stats->max),
                                       std::pair("mean", stats->mean), std::pair("std", stats->std)})
        stats->finite() == 0 ? json.field(key, nullptr) : json.field(key, value);
      if (with_histogram) json.array_field("histogram", stats->histogram);
    }
    json.end();
  }
  json.end();
  json.finish();
}

std::vector<std::string> cells(const Session& session, const TensorStats& result, bool with_sparkline) {
  std::vector<std::string> cells = {escape_for_terminal(result.name), std::string(name(result.tensor->dtype())),
                                    to_string(result.tensor->shape())};
  if (!result.stats) {
    cells.resize(10, "-");
  } else {
    const Stats& s = *result.stats;
    for (const double value : {s.min, s.max, s.mean, s.std})
      cells.push_back(s.finite() == 0 ? "-" : session.screen.number(value));
    for (const std::uint64_t count : {s.zeros, s.nans, s.infinities}) cells.push_back(std::to_string(count));
  }
  if (with_sparkline) cells.push_back(result.stats ? sparkline(result.stats->histogram) : "");
  return cells;
}

void write_table(Session& session, const Checkpoint& checkpoint, const std::vector<TensorStats>& results,
                 bool with_sparkline) {
  std::vector<Table::Column> columns = {{}, {.color = Color::cyan}, {}};
  columns.resize(10, {.right = true});
  std::vector<std::string> titles = {"name", "dtype", "shape", "min", "max", "mean", "std", "zeros", "nan", "inf"};
  if (with_sparkline) {
    columns.push_back({.color = Color::green});
    titles.push_back("histogram");
  }
  Table table(session.out, session.screen, columns);
  table.header(titles);
  for (const std::size_t i : natural_order(checkpoint)) table.row(cells(session, results[i], with_sparkline));
  table.finish();
}

int run_stats(Session& session, const Arguments& arguments) {
  if (arguments.bins > kMostBins)
    throw Error(Errc::invalid_argument, fmt::format("--bins: a histogram has at most {} bins", kMostBins));
  Checkpoint checkpoint = open_data(session, arguments.target);
  say_notes(session, checkpoint);
  checkpoint = select_tensors(session, std::move(checkpoint), arguments.globs);

  const bool single = checkpoint.size() == 1;
  unsigned bins = arguments.bins;
  if (bins == 0 && single && !session.json) bins = chart_bins(session, checkpoint.tensors[0].tensor);
  if (bins == 0 && arguments.histogram) bins = sparkline_bins(session, checkpoint);

  const auto results = collect(session, checkpoint, bins);
  if (session.json) {
    write_json(session, checkpoint, results, bins > 0);
    return 0;
  }
  write_table(session, checkpoint, results, bins > 0 && !single);
  if (single && results[0].stats && !results[0].stats->histogram.empty()) {
    const Stats& s = *results[0].stats;
    session.out.write("\n" +
                      chart(session.screen, s.histogram,
                            {.columns = chart_columns(session, *results[0].tensor), .min = s.min, .max = s.max}));
  }
  return 0;
}

}  // namespace

void add_stats(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose whole name matches one of these");
  verb.flag("--histogram", &arguments->histogram,
            "a small histogram for each tensor; one tensor always has a large one");
  verb.option("--bins", "N", &arguments->bins, "of the histogram; implies --histogram");
  add_selection_options(verb, session);
  add_json_option(verb, session);
  verb.examples =
      "  ballast stats model.safetensors '*.weight' --histogram\n  ballast stats model.safetensors wte.weight\n";
  verb.run = [arguments, &session] { return run_stats(session, *arguments); };
}

}  // namespace ballast::cli
