// stats: shows statistics of the values, or hunts for values that should not be there.
#include <ballast/stats.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/problems.hpp>

#include "../histogram.hpp"
#include "../options.hpp"
#include "stats_documents.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

struct Arguments {
  std::string target;
  std::vector<std::string> globs;
  bool histogram = false, is_long = false, problems = false;
  unsigned bins = 0;
  std::vector<std::string> quantiles;
  std::optional<std::string> axis, top, outlier_factor;
};

constexpr std::size_t kFewestBins = 8, kSparklineBins = 24, kChartColumns = 72;
constexpr unsigned kMostBins = 65536, kChannelsOnScreen = 20;
constexpr const char* kUsualQuantiles = "0,0.01,0.25,0.5,0.75,0.99,1";

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

template <class Number>
Number number_in(std::string_view option, std::string_view text, std::string_view what, std::string_view example) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw Error(Errc::invalid_argument, fmt::format("{}: \"{}\" is not {}", option, text, what))
      .hint(fmt::format("write {} {}, for example; --help shows what it means", option, example));
}

// "0.01,0.5", "0.99": each text may have several.
std::vector<double> quantiles_in(const std::vector<std::string>& texts) {
  std::vector<double> quantiles;
  for (std::string_view rest : texts) {
    for (;;) {
      const auto comma = rest.find(',');
      quantiles.push_back(number_in<double>("--quantiles", rest.substr(0, comma), "a number", "0.01,0.5,0.99"));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return quantiles;
}

// Options that would have no effect are refused.
void check_together(const Arguments& arguments) {
  struct Row {
    bool is_given;
    const char* option;
    bool belongs_to_problems;
  };
  const Row rows[] = {{arguments.histogram, "--histogram", false},
                      {arguments.bins != 0, "--bins", false},
                      {arguments.is_long, "--long", false},
                      {!arguments.quantiles.empty(), "--quantiles", false},
                      {arguments.axis.has_value(), "--axis", false},
                      {arguments.top.has_value(), "--top", false},
                      {arguments.outlier_factor.has_value(), "--outlier-factor", true}};
  for (const Row& row : rows) {
    if (!row.is_given || row.belongs_to_problems == arguments.problems) continue;
    throw Error(Errc::invalid_argument, row.belongs_to_problems
                                            ? fmt::format("{} needs --problems", row.option)
                                            : fmt::format("{} has no effect with --problems", row.option));
  }
  if (arguments.top && !arguments.axis) throw Error(Errc::invalid_argument, "--top needs --axis");
  if (arguments.bins > kMostBins)
    throw Error(Errc::invalid_argument, fmt::format("--bins: a histogram has at most {} bins", kMostBins));
}

void say_skipped(const Session& session, const ProblemReport& report) {
  std::map<std::string_view, std::vector<std::string_view>> by_reason;
  for (const auto& [tensor, why] : report.skipped) by_reason[why].push_back(tensor);
  for (const auto& [why, tensors] : by_reason)
    session.note(
        fmt::format("{} not looked at, such as \"{}\": {}", plural(tensors.size(), "tensor"), tensors[0], why));
}

int show_problems(Session& session, const Checkpoint& checkpoint, const Arguments& arguments) {
  auto bar = session.progress_bar();
  ProblemOptions options{
      .threads = session.threads, .progress = bar.callback(), .limits = session.limits, .team = session.team};
  if (arguments.outlier_factor)
    options.outlier_factor = number_in<double>("--outlier-factor", *arguments.outlier_factor, "a number", "8");
  const ProblemReport report = find_problems(checkpoint, options);
  bar.clear();

  const int exit_code = report.ok() ? 0 : info(Errc::mismatch).exit_code;
  if (session.json) {
    write_problems_json(session, checkpoint, report);
    return exit_code;
  }
  say_skipped(session, report);
  write_problems_table(session, report);
  session.out.flush();  // before the summary on stderr
  if (session.quiet) return exit_code;
  if (report.ok())
    session.out.line(fmt::format("ok: no problems in {}", session.screen.plural(report.tensors, "tensor")));
  else
    session.say(fmt::format("{}, {}", plural(report.errors(), "error"), plural(report.warnings(), "warning")));
  return exit_code;
}

// If the only tensor has no statistics, the error is the answer; if some of many tensors have none, the table has gaps.
void check_single(const Checkpoint& checkpoint, const TensorStats& result) {
  if (!result.stats && checkpoint.tensors[0].tensor.has_data())
    throw Error(Errc::unsupported, result.why_not).in(checkpoint.target);
}

// The same for a dimension that tensors do not have.
void check_channels(const Session& session, const Checkpoint& checkpoint, std::int64_t axis) {
  std::vector<std::string_view> without;
  for (const auto& [name, tensor] : checkpoint) {
    const auto rank = static_cast<std::int64_t>(tensor.rank());
    if (axis < -rank || axis >= rank) without.push_back(name);
  }
  if (without.empty()) return;
  if (without.size() == checkpoint.size())
    throw Error(Errc::invalid_argument, checkpoint.size() == 1 ? fmt::format("the tensor has no dimension {}", axis)
                                                               : fmt::format("no tensor has a dimension {}", axis))
        .in(checkpoint.target)
        .hint("dimensions are counted from 0, and negative ones from the last, which is -1");
  session.note(
      fmt::format("{} without a dimension {}, such as \"{}\"", plural(without.size(), "tensor"), axis, without[0]));
}

unsigned channels_shown(const Session& session, const Arguments& arguments) {
  if (arguments.top) return number_in<unsigned>("--top", *arguments.top, "a whole number of at least 0", "20");
  return session.shows_all() ? 0 : kChannelsOnScreen;
}

int show_stats(Session& session, const Checkpoint& checkpoint, const Arguments& arguments) {
  const bool is_single = checkpoint.size() == 1;
  if (checkpoint.size() == 0 && !session.json) session.note("there is no tensor in it");
  unsigned bins = arguments.bins;
  if (bins == 0 && is_single && !session.json && !arguments.axis)
    bins = chart_bins(session, checkpoint.tensors[0].tensor);
  if (bins == 0 && arguments.histogram) bins = sparkline_bins(session, checkpoint);

  StatsOptions options{.bins = bins, .outliers = arguments.is_long, .quantiles = quantiles_in(arguments.quantiles)};
  const unsigned top = channels_shown(session, arguments);
  if (arguments.axis) {
    options.axis = number_in<std::int64_t>("--axis", *arguments.axis, "a whole number", "-1");
    check_channels(session, checkpoint, *options.axis);
  }
  options.threads = session.threads;
  options.limits = session.limits;
  options.team = session.team;
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  const std::vector<TensorStats> results = stats(checkpoint, options);
  bar.clear();

  const StatsColumns columns{.sparkline = bins > 0 && (session.json || !is_single),
                             .is_long = arguments.is_long,
                             .channels = options.axis.has_value()};
  if (session.json) {
    write_stats_json(session, checkpoint, results, columns);
    return 0;
  }
  if (is_single) check_single(checkpoint, results[0]);
  if (options.axis) {
    write_channels_table(session, checkpoint, results, top);
    return 0;
  }
  write_stats_table(session, checkpoint, results, columns);
  if (is_single && results[0].stats && !results[0].stats->histogram.empty()) {
    const Stats& s = *results[0].stats;
    const std::size_t columns_of_chart = chart_columns(session, checkpoint.tensors[0].tensor);
    session.out.write("\n" +
                      chart(session.screen, s.histogram, {.columns = columns_of_chart, .min = s.min, .max = s.max}));
  }
  return 0;
}

int run_stats(Session& session, const Arguments& arguments) {
  check_together(arguments);
  Checkpoint checkpoint = open_data(session, arguments.target);
  say_notes(session, checkpoint);
  checkpoint = select_tensors(session, std::move(checkpoint), arguments.globs);
  try {
    return arguments.problems ? show_problems(session, checkpoint, arguments)
                              : show_stats(session, checkpoint, arguments);
  } catch (Error& error) {
    if (error.code() == Errc::invalid_argument) throw;
    throw error.in(checkpoint.target);
  }
}

}  // namespace

void add_stats(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  add_target(verb, arguments->target);
  verb.positional("GLOB", &arguments->globs, "only tensors whose full name matches one of these");
  verb.group("What is shown");
  verb.flag("--problems", &arguments->problems,
            "only tensors with NaN, Inf, nothing but zeros, constant rows, or an odd spread; exit 1 if there are any");
  verb.option("--outlier-factor", "X", &arguments->outlier_factor,
              "with --problems: odd is above X times the median of its pattern, or below a part of X; 8 by default");
  verb.option("--quantiles", "Q", &arguments->quantiles,
              "exact ones, such as 0.01,0.5,0.99; without a value 0, 0.01, 0.25, 0.5, 0.75, 0.99, 1; repeatable");
  verb.arguments.back().implied = kUsualQuantiles;
  verb.flag("--long", &arguments->is_long, "norms, and the share of values farther than 6 std from the mean");
  verb.option("--axis", "N", &arguments->axis, "a line for each index of dimension N; -1 is the last one");
  verb.option("--top", "N", &arguments->top,
              "with --axis, the N channels with the largest magnitudes; 0 is all, 20 on a terminal");
  verb.flag("--histogram", &arguments->histogram,
            "a small histogram for each tensor; one tensor always has a large one");
  verb.option("--bins", "N", &arguments->bins, "of the histogram; implies --histogram");
  add_json_option(verb, session);
  verb.group("Which tensors");
  add_selection_options(verb, session);
  verb.examples =
      "  ballast stats model.safetensors '*.weight' --histogram\n  ballast stats model.safetensors wte.weight\n"
      "  ballast stats model.safetensors --problems\n  ballast stats model.safetensors wte.weight --axis -1\n";
  verb.run = [arguments, &session] { return run_stats(session, *arguments); };
}

}  // namespace ballast::cli
