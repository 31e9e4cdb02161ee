#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <ballast/text.hpp>

#include "diff_report.hpp"
#include "strip_chart.hpp"
#include "table.hpp"

namespace ballast::cli {
namespace {

using Change = DiffReport::Change;
using What = DiffReport::What;

constexpr std::uint64_t kTopOnTerminal = 10;
constexpr std::size_t kNarrowestChart = 8;

std::string percent(const Terminal& screen, double share) { return screen.number(100 * share, 3) + " %"; }

std::string percent(const Terminal& screen, std::optional<double> share) {
  return share ? percent(screen, *share) : "-";
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype()), to_string(tensor.shape()));
}

std::string index_text(const std::vector<std::uint64_t>& index) {
  return index.empty() ? "" : fmt::format(" at [{}]", fmt::join(index, ", "));
}

std::string rank_text(const Terminal& screen, const DiffReport::Rank& rank) {
  const auto count = [&](const std::optional<std::uint64_t>& values) {
    return values ? screen.count(*values) : std::string("more than 128");
  };
  const std::string about = rank.before_gap ? fmt::format("rank ≈ {}, ", screen.count(*rank.before_gap)) : "";
  return fmt::format("; {}stable rank {}, 90 % in {}, 99 % in {}", about, screen.number(rank.stable, 3),
                     count(rank.of_90), count(rank.of_99));
}

// "; change 1.8 %, cosine 0.9998": what the values as a whole say.
std::string numbers_text(const Terminal& screen, const Change& change) {
  std::string text;
  if (change.numbers && change.numbers->relative_change())
    text += fmt::format("; change {}", percent(screen, *change.numbers->relative_change()));
  if (change.numbers && change.numbers->cosine())
    text += fmt::format(", cosine {}", screen.number(*change.numbers->cosine(), 6));
  if (change.rank) text += rank_text(screen, *change.rank);
  return text;
}

std::string values_text(const Terminal& screen, const Change& change) {
  const bool has_blocks = change.compared != change.shape_a.numel();
  std::string text = fmt::format("{} of {} differ", screen.plural(change.different, has_blocks ? "block" : "value"),
                                 screen.count(change.compared));
  if (change.numbers) {
    text += fmt::format(", by at most {} (relative {}){}", screen.number(change.max_abs), screen.number(change.max_rel),
                        change.max_at ? index_text(*change.max_at) : "");
  }
  if (change.nan_mismatch != 0) text += fmt::format("; {} NaN on one side only", screen.count(change.nan_mismatch));
  return text + numbers_text(screen, change);
}

std::string dtype_text(const Terminal& screen, const Change& change) {
  const std::string text = fmt::format("dtype {} → {}", name(change.dtype_a), name(change.dtype_b));
  if (change.compared == 0) return text;
  if (change.different == 0) return text + ", the same values";
  return text + ", " + values_text(screen, change);
}

std::string describe(const Terminal& screen, const Change& change) {
  switch (change.what) {
    case What::shape: return fmt::format("shape {} → {}", to_string(change.shape_a), to_string(change.shape_b));
    case What::dtype: return dtype_text(screen, change);
    case What::data: return "only one side has data";
    case What::values: return values_text(screen, change);
  }
  return "";
}

// A column a layer.
std::string depth_chart(const Terminal& screen, const DiffReport::Role& role, std::size_t columns) {
  std::vector<std::optional<double>> values;
  for (const auto& layer : role.layers) values.push_back(layer.relative);
  return values.size() < 2 ? "" : strip_chart(screen, values, columns);
}

class DiffText {
 public:
  DiffText(Session& session, const DiffView& view, const DiffReport& report)
      : out_(session.out), screen_(session.screen), session_(session), view_(view), report_(report) {}

  void write() {
    if (!session_.quiet) write_summary();
    if (!session_.quiet) write_roles();
    for (const auto& name : report_.only_in_a) line(Color::red, '-', name, describe(view_.sides->a.at(name)));
    for (const auto& name : report_.only_in_b) line(Color::green, '+', name, describe(view_.sides->b.at(name)));
    write_changes();
  }

 private:
  void line(Color color, char mark, const std::string& name, const std::string& what) {
    out_.line(screen_.paint(color, fmt::format("{} {}  {}", mark, escape_for_terminal(name), what)));
  }

  void write_summary() {
    if (report_.equal()) {
      out_.line(fmt::format("equal: {}", screen_.plural(report_.equal_count, "tensor")));
      return;
    }
    out_.line(fmt::format("{} equal, {} only in A, {} only in B, {} changed", screen_.count(report_.equal_count),
                          screen_.count(report_.only_in_a.size()), screen_.count(report_.only_in_b.size()),
                          screen_.count(report_.changed.size())));
    if (const auto relative = report_.overall.relative_change(); relative && *relative > 0) {
      out_.line(fmt::format("changed tensors: change {}, RMS {}, cosine {}", percent(screen_, *relative),
                            screen_.number(report_.overall.rms().value_or(0)),
                            screen_.number(report_.overall.cosine().value_or(0), 6)));
    }
    write_costs();
    write_ranks();
  }

  // The side with fewer bits costs. A recipe of llama.cpp's stands for several types.
  void write_costs() {
    write_recipe(view_.file_type_a, &DiffReport::DTypeCost::dtype_a);
    write_recipe(view_.file_type_b, &DiffReport::DTypeCost::dtype_b);
    const auto dtypes = [](const DiffReport::DTypeCost& cost) {
      const DTypeInfo &a = info(cost.dtype_a), &b = info(cost.dtype_b);
      const bool is_a = a.block_bytes * b.block_elements < b.block_bytes * a.block_elements;
      return is_a ? std::pair(a.name, b.name) : std::pair(b.name, a.name);
    };
    const auto is_lossy = [](const auto& cost) { return cost.numbers.norm_change > 0; };
    const bool is_any_lossy = std::ranges::any_of(report_.dtype_costs, is_lossy);
    for (const auto& cost : report_.dtype_costs) {
      const auto [what, other] = dtypes(cost);
      const auto has_same = [&](const auto& another) { return dtypes(another).first == what; };
      const bool is_only_one = std::ranges::count_if(report_.dtype_costs, has_same) == 1;
      const std::string label = is_only_one ? std::string(what) : fmt::format("{} for {}", what, other);
      if (!is_any_lossy) out_.line(label + " costs nothing");
      if (is_lossy(cost)) write_cost(label, cost.numbers.norm_change, cost.numbers.norm_a, cost.worst_name);
    }
  }

  void write_recipe(std::string_view recipe, DType DiffReport::DTypeCost::*side) {
    double change = 0, before = 0;
    const DiffReport::DTypeCost* worst = nullptr;
    std::size_t types = 0;
    for (const auto& cost : report_.dtype_costs) {
      if (recipe.empty() || info(cost.*side).kind != DTypeKind::ggml) continue;
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
    out_.line(fmt::format("{} costs {} RMS, worst in {}", what, percent(screen_, change / before),
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
    out_.line(fmt::format("rank ≈ {} in {} of {} changed matrices: a LoRA was merged, it seems",
                          screen_.count(gaps[gaps.size() / 2]), screen_.count(gaps.size()), screen_.count(matrices)));
  }

  // Roles say something only if one of them stands for several tensors whose values changed.
  void write_roles() {
    const auto is_folded = [](const auto& role) { return role.changed > 1 && role.worst > 0.0; };
    if (std::ranges::none_of(report_.roles, is_folded)) return;
    std::size_t widest = 0;
    for (const auto& role : report_.roles) widest = std::max(widest, columns_of(escape_for_terminal(role.pattern)));
    const std::size_t others = widest + 38;  // the indent, the gaps and three columns of numbers
    const std::size_t columns = std::max(kNarrowestChart, screen_.width > others ? screen_.width - others : 0);
    out_.line("");
    Table table(out_, screen_, {{}, {.right = true}, {.right = true}, {.right = true}, {.color = Color::cyan}}, "  ");
    table.header({"role", "changed", "median", "worst", "by layer"});
    for (const auto& role : report_.roles) {
      table.row({escape_for_terminal(role.pattern),
                 fmt::format("{} of {}", screen_.count(role.changed), screen_.count(role.tensors)),
                 percent(screen_, role.median), percent(screen_, role.worst), depth_chart(screen_, role, columns)});
    }
    table.finish();
    out_.line("");
  }

  void write_change(const Change& change) { line(Color::yellow, '~', change.name, describe(screen_, change)); }

  // Changes without numbers are few, and never cut.
  void write_changes() {
    const auto is_plain = [](const Change* change) { return change->compared == 0; };
    auto sorted = report_.by_change();
    for (const Change* change : sorted) {
      if (is_plain(change)) write_change(*change);
    }
    std::erase_if(sorted, is_plain);
    const std::uint64_t all = sorted.size();
    const bool is_cut = view_.top || !session_.shows_all();
    const std::uint64_t shown = is_cut ? std::min(all, view_.top.value_or(kTopOnTerminal)) : all;
    for (std::uint64_t i = 0; i < shown; ++i) write_change(*sorted[i]);
    if (shown < all && !session_.quiet) {
      out_.line(screen_.paint(Color::dim,
                              fmt::format("  {} more changed; --top {} shows all", screen_.count(all - shown), all)));
    }
  }

  Output& out_;
  const Terminal& screen_;
  const Session& session_;
  const DiffView& view_;
  const DiffReport& report_;
};

}  // namespace

void write_diff_text(Session& session, const DiffView& view, const DiffReport& report) {
  DiffText(session, view, report).write();
}

}  // namespace ballast::cli
