#include "stats_documents.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "../histogram.hpp"
#include "../json_writer.hpp"
#include "../table.hpp"

namespace ballast::cli {
namespace {

struct StatsNumber {
  const char* name;
  double Stats::*value;
};
constexpr StatsNumber kNumbers[] = {
    {"min", &Stats::min}, {"max", &Stats::max}, {"mean", &Stats::mean}, {"std", &Stats::std}};
constexpr StatsNumber kNorms[] = {
    {"l1", &Stats::l1}, {"l2", &Stats::l2}, {"max_abs", &Stats::max_abs}, {"rms", &Stats::rms}};

struct ChannelNumber {
  const char* name;
  double ChannelStats::*value;
};
constexpr ChannelNumber kChannelNumbers[] = {{"min", &ChannelStats::min},
                                             {"max", &ChannelStats::max},
                                             {"mean", &ChannelStats::mean},
                                             {"std", &ChannelStats::std}};

double outlier_share(const Stats& stats) {
  return static_cast<double>(stats.outliers.value_or(0)) / static_cast<double>(stats.finite());
}

template <class Key>
void number_or_null(JsonWriter& json, const Key& key, bool exists, double value) {
  exists ? json.field(key, value) : json.field(key, nullptr);
}

void write_channels(JsonWriter& json, const Stats& stats) {
  json.key("channels");
  json.begin_array();
  for (const ChannelStats& channel : stats.channels) {
    json.begin_object();
    for (const auto& [name, value] : kChannelNumbers) number_or_null(json, name, channel.finite != 0, channel.*value);
    json.field("nans", channel.nans);
    json.field("infinities", channel.infinities);
    json.end();
  }
  json.end();
}

void write_quantiles(JsonWriter& json, const Stats& stats) {
  json.key("quantiles");
  json.begin_array();
  for (const Quantile& quantile : stats.quantiles) {
    json.begin_object();
    json.field("quantile", quantile.quantile);
    number_or_null(json, "value", quantile.value.has_value(), quantile.value.value_or(0));
    json.end();
  }
  json.end();
}

void write_statistics(JsonWriter& json, const Stats& stats, const StatsColumns& columns) {
  json.field("count", stats.count);
  json.field("zeros", stats.zeros);
  json.field("nans", stats.nans);
  json.field("infinities", stats.infinities);
  const bool has_finite = stats.finite() != 0;
  for (const auto& [name, value] : kNumbers) number_or_null(json, name, has_finite, stats.*value);
  for (const auto& [name, value] : kNorms) number_or_null(json, name, has_finite, stats.*value);
  if (stats.outliers) {
    json.field("outliers", *stats.outliers);
    number_or_null(json, "outlier_share", has_finite, outlier_share(stats));
  }
  if (columns.sparkline) json.array_field("histogram", stats.histogram);
  if (!stats.quantiles.empty()) write_quantiles(json, stats);
  if (columns.channels) write_channels(json, stats);
}

std::vector<std::string> titles(std::span<const TensorStats> results, const StatsColumns& columns) {
  std::vector<std::string> titles = {"name", "dtype", "shape", "min", "max", "mean", "std", "zeros", "nan", "inf"};
  if (columns.is_long) {
    for (const auto& [name, value] : kNorms) titles.emplace_back(name);
    titles.emplace_back("outliers");
  }
  for (const TensorStats& result : results) {
    if (!result.stats) continue;
    for (const Quantile& quantile : result.stats->quantiles) titles.push_back(fmt::format("q{}", quantile.quantile));
    break;
  }
  return titles;
}

std::vector<std::string> numbers(const Session& session, const Stats& s, const StatsColumns& columns) {
  std::vector<std::string> cells;
  const auto number = [&](bool exists, double value) { cells.push_back(exists ? session.screen.number(value) : "-"); };
  const bool has_finite = s.finite() != 0;
  for (const auto& [name, value] : kNumbers) number(has_finite, s.*value);
  for (const std::uint64_t count : {s.zeros, s.nans, s.infinities}) cells.push_back(std::to_string(count));
  if (columns.is_long) {
    for (const auto& [name, value] : kNorms) number(has_finite, s.*value);
    number(has_finite, outlier_share(s));
  }
  for (const Quantile& quantile : s.quantiles) number(quantile.value.has_value(), quantile.value.value_or(0));
  return cells;
}

// The channels that are shown, in order: all of them, or those with NaN, infinities and then the largest magnitudes.
std::vector<std::size_t> channels_to_show(std::span<const ChannelStats> channels, unsigned top) {
  std::vector<std::size_t> order(channels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (top == 0 || channels.size() <= top) return order;
  const auto weight = [&](std::size_t i) {
    const ChannelStats& c = channels[i];
    return std::tuple(c.nans != 0, c.infinities != 0, std::max(std::fabs(c.min), std::fabs(c.max)));
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  order.resize(top);
  return order;
}

void say_hidden_channels(const Session& session, std::uint64_t hidden) {
  if (hidden != 0)
    session.note(fmt::format("{} with smaller magnitudes left out; --top N shows more, --json all",
                             session.screen.plural(hidden, "channel")));
}

}  // namespace

void write_stats_json(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                      const StatsColumns& columns) {
  JsonWriter json(session.out, "ballast.stats/1");
  json.field("target", checkpoint.target);
  json.key("tensors");
  json.begin_array(JsonWriter::Layout::lines);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor& tensor = checkpoint.tensors[i].tensor;
    json.begin_object();
    json.field("name", results[i].name);
    json.field("dtype", name(tensor.dtype()));
    json.array_field("shape", tensor.shape());
    json.field("supported", results[i].stats.has_value());
    if (results[i].stats) write_statistics(json, *results[i].stats, columns);
    json.end();
  }
  json.end();
  json.finish();
}

void write_stats_table(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                       const StatsColumns& columns) {
  std::vector<std::string> head = titles(results, columns);
  const std::size_t width = head.size();
  // Of a screen that is too narrow, counts that are 0 everywhere go first, then the shape; what was asked for goes
  // last.
  const auto drop_of_count = [&](std::uint64_t Stats::*count, unsigned drop) {
    const auto has_any = [count](const TensorStats& result) { return result.stats && (*result.stats).*count != 0; };
    return std::ranges::any_of(results, has_any) ? drop : 10;
  };
  const unsigned zeros = drop_of_count(&Stats::zeros, 7), nans = drop_of_count(&Stats::nans, 2),
                 infinities = drop_of_count(&Stats::infinities, 2);
  std::vector<Table::Column> layout = {{}, {.color = Color::cyan, .drop = 8}, {.drop = 9}};
  for (const unsigned drop : {4u, 5u, 6u, 3u, zeros, nans, infinities}) layout.push_back({.right = true, .drop = drop});
  layout.resize(width, {.right = true, .drop = 1});
  if (columns.sparkline) {
    layout.push_back({.color = Color::green, .drop = 1});
    head.emplace_back("histogram");
  }
  Table table(session.out, session.screen, layout);
  table.header(head);
  for (const std::size_t i : natural_order(checkpoint)) {
    const Tensor& tensor = checkpoint.tensors[i].tensor;
    std::vector<std::string> cells = {escape_for_terminal(results[i].name), std::string(name(tensor.dtype())),
                                      to_string(tensor.shape())};
    if (const auto& stats = results[i].stats) {
      for (std::string& cell : numbers(session, *stats, columns)) cells.push_back(std::move(cell));
    }
    cells.resize(width, "-");
    if (columns.sparkline)
      cells.push_back(results[i].stats ? sparkline(session.screen, results[i].stats->histogram) : "");
    table.row(cells);
  }
  table.finish();
}

void write_channels_table(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                          unsigned top) {
  std::vector<Table::Column> layout = {{}, {.right = true}};
  for (const unsigned drop : {1u, 1u, 3u, 2u, 1u, 1u}) layout.push_back({.right = true, .drop = drop});
  Table table(session.out, session.screen, layout);
  table.header({"name", "channel", "min", "max", "mean", "std", "nan", "inf"});
  std::uint64_t hidden = 0;
  for (const std::size_t i : natural_order(checkpoint)) {
    if (!results[i].stats) continue;
    const std::vector<ChannelStats>& channels = results[i].stats->channels;
    const std::vector<std::size_t> shown = channels_to_show(channels, top);
    hidden += channels.size() - shown.size();
    for (const std::size_t channel : shown) {
      const ChannelStats& c = channels[channel];
      std::vector<std::string> cells = {escape_for_terminal(results[i].name), std::to_string(channel)};
      for (const auto& [name, value] : kChannelNumbers)
        cells.push_back(c.finite == 0 ? "-" : session.screen.number(c.*value));
      for (const std::uint64_t count : {c.nans, c.infinities}) cells.push_back(std::to_string(count));
      table.row(cells);
    }
  }
  table.finish();
  session.out.flush();  // before the note on stderr
  say_hidden_channels(session, hidden);
}

void write_problems_json(Session& session, const Checkpoint& checkpoint, const ProblemReport& report) {
  JsonWriter json(session.out, "ballast.stats.problems/1");
  json.field("target", checkpoint.target);
  json.field("ok", report.ok());
  json.field("tensors", report.tensors);
  json.field("errors", report.errors());
  json.field("warnings", report.warnings());
  json.key("problems");
  json.begin_array(JsonWriter::Layout::lines);
  for (const Problem& problem : report.problems) {
    const bool is_outlier = problem.kind == ProblemKind::outlier;
    json.begin_object();
    json.field("name", problem.tensor);
    json.field("kind", name(problem.kind));
    json.field("severity", name(severity(problem.kind)));
    is_outlier ? json.field("first", nullptr) : json.array_field("first", problem.first);
    is_outlier ? json.field("count", nullptr) : json.field("count", problem.count);
    json.field("text", problem.text);
    if (is_outlier) {
      json.field("std", problem.std);
      json.field("median_std", problem.median_std);
    }
    json.end();
  }
  json.end();
  json.key("skipped");
  json.begin_array(JsonWriter::Layout::lines);
  for (const ProblemReport::Skipped& skipped : report.skipped) {
    json.begin_object();
    json.field("name", skipped.tensor);
    json.field("why", skipped.why);
    json.end();
  }
  json.end();
  json.finish();
}

void write_problems_table(Session& session, const ProblemReport& report) {
  Table table(session.out, session.screen, {{}, {.color = Color::red}, {.drop = 1}, {.wraps = true}});
  if (!report.ok()) table.header({"name", "problem", "severity", "what"});
  std::vector<std::string_view> names;
  for (const Problem& problem : report.problems) names.push_back(problem.tensor);
  for (const std::size_t i : ballast::natural_order(names)) {
    const Problem& problem = report.problems[i];
    table.row({escape_for_terminal(problem.tensor), std::string(name(problem.kind)),
               std::string(name(severity(problem.kind))), escape_for_terminal(problem.text)});
  }
  table.finish();
}

}  // namespace ballast::cli
