#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "diff_report.hpp"
#include "strip_chart.hpp"
#include "table.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

using Change = DiffReport::Change;

constexpr std::size_t kNarrowestChart = 8, kNarrowestRole = 24;
constexpr std::optional<double> kInfinite = std::numeric_limits<double>::infinity();

std::string percent(const Terminal& screen, std::optional<double> share) {
  return share ? cli::percent(screen, *share) : "-";
}

// A column a layer.
std::string depth_chart(const Terminal& screen, const DiffReport::Role& role, std::size_t columns) {
  std::vector<std::optional<double>> values;
  for (const auto& layer : role.layers) values.push_back(layer.broken ? kInfinite : layer.relative);
  return values.size() < 2 ? "" : strip_chart(screen, values, columns);
}

// The dtype that costs: the one with fewer bits.
DType cost_of(const DiffReport::DTypeCost& cost) {
  const DTypeInfo &a = info(cost.dtype_a), &b = info(cost.dtype_b);
  return a.block_bytes * b.block_elements < b.block_bytes * a.block_elements ? cost.dtype_a : cost.dtype_b;
}

class DiffText {
 public:
  DiffText(Session& session, const DiffView& view, const DiffReport& report)
      : out_(session.out), screen_(session.screen), session_(session), view_(view), report_(report) {}

  void write() {
    if (!session_.quiet) write_summary();
    if (!session_.quiet) write_roles();
    write_diff_lines(session_, view_, report_);
  }

 private:
  void say(std::string_view text) { out_.line(labelled(screen_, "", text)); }

  std::string_view unless_values_were_compared() const {
    return view_.compares_values ? "" : ", by names, dtypes and shapes; values were not compared";
  }

  void write_summary() {
    if (report_.equal()) {
      say(fmt::format("equal: {}{}", screen_.plural(report_.equal_count, "tensor"), unless_values_were_compared()));
      return;
    }
    say(fmt::format("{} equal, {} only in A, {} only in B, {} changed{}", screen_.count(report_.equal_count),
                    screen_.count(report_.only_in_a.size()), screen_.count(report_.only_in_b.size()),
                    screen_.count(report_.changed.size()), unless_values_were_compared()));
    const std::uint64_t broken = report_.broken_count();
    if (broken != 0) {
      const std::string what = fmt::format("{} {} NaN or infinite values on one side only",
                                           screen_.plural(broken, "tensor"), broken == 1 ? "has" : "have");
      out_.line(screen_.paint(Color::red, labelled(screen_, "", what)));
    }
    if (const auto relative = report_.overall.relative_change(); relative && *relative > 0) {
      say(fmt::format("changed tensors: change {}, RMS {}, cosine {}{}", percent(screen_, *relative),
                      screen_.number(report_.overall.rms().value_or(0)),
                      screen_.number(report_.overall.cosine().value_or(0), 6),
                      broken == 0 ? "" : ", of what is finite on both sides"));
    }
    write_costs();
    write_ranks();
  }

  // The side with fewer bits costs. A recipe of llama.cpp's stands for several types.
  void write_costs() {
    write_recipe(view_.file_type_a, &DiffReport::DTypeCost::dtype_a);
    write_recipe(view_.file_type_b, &DiffReport::DTypeCost::dtype_b);
    const auto dtypes = [](const DiffReport::DTypeCost& cost) {
      const DType fewer = cost_of(cost);
      return std::pair(name(fewer), name(fewer == cost.dtype_a ? cost.dtype_b : cost.dtype_a));
    };
    const auto is_lossy = [](const auto& cost) { return cost.numbers.norm_change > 0; };
    const bool is_any_lossy = std::ranges::any_of(report_.dtype_costs, is_lossy);
    for (const auto& cost : report_.dtype_costs) {
      const auto [what, other] = dtypes(cost);
      const auto has_same = [&](const auto& another) { return dtypes(another).first == what; };
      const bool is_only_one = std::ranges::count_if(report_.dtype_costs, has_same) == 1;
      const std::string label = is_only_one ? std::string(what) : fmt::format("{} for {}", what, other);
      if (!is_any_lossy && report_.broken_count() == 0) out_.line(label + " costs nothing");
      if (is_lossy(cost)) write_cost(label, cost.numbers.norm_change, cost.numbers.norm_a, cost.worst_name);
    }
  }

  void write_recipe(std::string_view recipe, DType DiffReport::DTypeCost::*side) {
    double change = 0, before = 0;
    const DiffReport::DTypeCost* worst = nullptr;
    std::size_t types = 0;
    for (const auto& cost : report_.dtype_costs) {
      if (recipe.empty() || info(cost.*side).kind != DTypeKind::ggml || cost_of(cost) != cost.*side) continue;
      ++types;
      change = std::hypot(change, cost.numbers.norm_change);
      before = std::hypot(before, cost.numbers.norm_a);
      if (worst == nullptr || cost.worst > worst->worst) worst = &cost;
    }
    if (types > 1) write_cost(recipe, change, before, worst->worst_name);
  }

  void write_cost(std::string_view what, double change, double before, std::string_view worst) {
    if (!(change > 0) || !(before > 0)) return;
    if (worst.ends_with(".weight")) worst.remove_suffix(7);
    say(fmt::format("{} costs {} RMS, worst in {}", what, percent(screen_, change / before),
                    escape_for_terminal(worst)));
  }

  void write_ranks() {
    std::vector<std::uint64_t> gaps;
    std::uint64_t matrices = 0;
    for (const Change& change : report_.changed) {
      if (!change.rank) continue;
      ++matrices;
      if (change.rank->before_gap) gaps.push_back(*change.rank->before_gap);
    }
    if (gaps.empty() || gaps.size() * 10 < matrices * 8) return;
    std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
    say(fmt::format("rank ≈ {} in {} of {} changed matrices: a LoRA was merged, it seems",
                    screen_.count(gaps[gaps.size() / 2]), screen_.count(gaps.size()), screen_.count(matrices)));
  }

  // Roles say something only if one of them stands for several tensors whose values changed.
  void write_roles() {
    const auto is_folded = [](const auto& role) { return role.changed > 1 && (role.worst > 0.0 || role.broken != 0); };
    if (std::ranges::none_of(report_.roles, is_folded)) return;
    std::size_t widest = 0;
    for (const auto& role : report_.roles) widest = std::max(widest, columns_of(escape_for_terminal(role.pattern)));
    const std::size_t others = widest + 38;  // the indent, the gaps and three columns of numbers
    // Layers are what the table is for: where no chart has room beside the numbers, it stands below them.
    const bool is_beside = screen_.whole || !screen_.interactive || screen_.width >= others + kNarrowestChart;
    const std::size_t columns =
        !is_beside ? kNarrowestRole : std::max(kNarrowestChart, screen_.width - std::min(screen_.width, others));
    out_.line("");
    Table table(out_, screen_,
                {{.narrowest = kNarrowestRole},
                 {.right = true, .drop = 1},
                 {.right = true, .drop = 2},
                 {.right = true},
                 {.color = Color::cyan}},
                "  ");
    if (is_beside)
      table.header({"role", "changed", "median", "worst", "by layer"});
    else
      table.header({"role, by layer", "changed", "median", "worst"});
    for (const auto& role : report_.roles) {
      const std::string chart = depth_chart(screen_, role, columns);
      std::vector<std::string> cells = {
          escape_for_terminal(role.pattern),
          fmt::format("{} of {}", screen_.count(role.changed), screen_.count(role.tensors)),
          percent(screen_, role.median), role.broken == 0 ? percent(screen_, role.worst) : "NaN, Inf"};
      if (is_beside) cells.push_back(chart);
      table.row(cells);
      if (!is_beside && !chart.empty()) table.row({screen_.paint(Color::cyan, chart)});
    }
    table.finish();
    out_.line("");
  }

  Output& out_;
  const Terminal& screen_;
  Session& session_;
  const DiffView& view_;
  const DiffReport& report_;
};

}  // namespace

void write_diff_text(Session& session, const DiffView& view, const DiffReport& report) {
  DiffText(session, view, report).write();
}

}  // namespace ballast::cli
