// The lines of diff: what only one side has, and what changed.
#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include "diff_report.hpp"
#include "table.hpp"
#include "wrap.hpp"

namespace ballast::cli {
namespace {

using Change = DiffReport::Change;
using What = DiffReport::What;

constexpr std::uint64_t kTopOnTerminal = 10;

std::string_view arrow(const Terminal& screen) { return screen.utf8 || !screen.interactive ? "→" : "->"; }

std::string describe(DType dtype, const Shape& shape) { return fmt::format("{} {}", name(dtype), to_string(shape)); }

std::string index_text(const std::vector<std::uint64_t>& index) {
  return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ", "));
}

std::string rank_text(const Terminal& screen, const DiffReport::Rank& rank) {
  const auto count = [&](const std::optional<std::uint64_t>& values) {
    return values ? screen.count(*values) : std::string("more than 128");
  };
  const std::string about = rank.before_gap ? fmt::format("rank ≈ {}, ", screen.count(*rank.before_gap)) : "";
  return fmt::format("{}stable rank {}, 90 % in {}, 99 % in {}", about, screen.number(rank.stable, 3),
                     count(rank.of_90), count(rank.of_99));
}

// "; change 1.8 %, cosine 0.9998": what the values as a whole say.
std::string numbers_text(const Terminal& screen, const Change& change) {
  std::string text;
  if (change.numbers && change.numbers->relative_change())
    text += fmt::format("; change {}", percent(screen, *change.numbers->relative_change()));
  if (change.numbers && change.numbers->cosine())
    text += fmt::format(", cosine {}", screen.number(*change.numbers->cosine(), 6));
  if (change.rank) text += "; " + rank_text(screen, *change.rank);
  return text;
}

std::string values_text(const Terminal& screen, const Change& change) {
  const bool has_blocks = change.compared != change.shape_a.numel();
  std::string text = fmt::format("{} of {} {}", screen.plural(change.different, has_blocks ? "block" : "value"),
                                 screen.count(change.compared), change.different == 1 ? "differs" : "differ");
  if (change.numbers && change.max_at) {
    text += fmt::format(", by at most {} (relative {})", screen.number(change.max_abs), screen.number(change.max_rel));
    if (!change.max_at->empty()) text += " at " + index_text(*change.max_at);
  }
  if (change.nan_mismatch != 0) text += fmt::format("; {} NaN on one side only", screen.count(change.nan_mismatch));
  return text + numbers_text(screen, change);
}

std::string dtype_text(const Terminal& screen, const Change& change) {
  const std::string text = fmt::format("dtype {} {} {}", name(change.dtype_a), arrow(screen), name(change.dtype_b));
  if (change.compared == 0) return text;
  if (change.different == 0) return text + ", the same values";
  return text + ", " + values_text(screen, change);
}

std::string describe(const Terminal& screen, const Change& change) {
  switch (change.what) {
    case What::shape:
      return fmt::format("shape {} {} {}", to_string(change.shape_a), arrow(screen), to_string(change.shape_b));
    case What::dtype: return dtype_text(screen, change);
    case What::data: return "only one side has data";
    case What::values: return values_text(screen, change);
  }
  return "";
}

// Whether a change has numbers to be sorted by, and more to say than that the values are the same.
bool has_numbers(const Change& change) { return change.compared != 0 && change.different != 0; }

class DiffLines {
 public:
  DiffLines(Session& session, const DiffView& view, const DiffReport& report)
      : out_(session.out), screen_(session.screen), session_(session), view_(view), report_(report) {}

  void write() {
    write_one_sided(Color::red, '-', report_.only_in_a, view_.sides->a);
    write_one_sided(Color::green, '+', report_.only_in_b, view_.sides->b);
    auto sorted = report_.by_change();
    std::vector<const Change*> plain;
    std::ranges::copy_if(sorted, std::back_inserter(plain), std::not_fn(has_numbers_at));
    std::erase_if(sorted, std::not_fn(has_numbers_at));
    write_plain(plain);
    write_with_numbers(sorted);
  }

 private:
  static bool has_numbers_at(const Change* change) { return has_numbers(*change); }
  bool is_folded() const { return !session_.shows_all(); }

  void line(Color color, char mark, std::string_view name, std::uint64_t tensors, std::string_view what) {
    const std::string count = tensors < 2 ? "" : fmt::format("{}{}  ", screen_.times(), tensors);
    const std::string rest = fmt::format("{}{}", count, what);
    const std::size_t taken = 4 + columns_of(rest);
    const std::size_t room = screen_.width > taken ? screen_.width - taken : 0;
    std::string shown = escape_for_terminal(name);
    if (!screen_.utf8) shown = in_ascii(shown);
    if (is_folded()) shown = elided(shown, std::max<std::size_t>(room, 24), screen_.ellipsis());
    out_.line(screen_.paint(color, labelled(screen_, fmt::format("{} {}  ", mark, shown), rest)));
  }

  void write_patterns(Color color, char mark, const Checkpoint& some, const std::string& what) {
    for (const auto& pattern : summarize(some).patterns)
      line(color, mark, pattern.name, pattern.tensors, what.empty() ? describe(pattern.dtype, pattern.shape) : what);
  }

  void write_one_sided(Color color, char mark, const std::vector<std::string>& names, const Checkpoint& side) {
    Checkpoint some;
    for (const std::string& name : names) {
      const Tensor& tensor = side.at(name);
      if (is_folded())
        some.tensors.insert(name, tensor);
      else
        line(color, mark, name, 1, describe(tensor.dtype(), tensor.shape()));
    }
    write_patterns(color, mark, some, "");
  }

  // Such changes are few, or there is one for each layer. They are never cut.
  void write_plain(const std::vector<const Change*>& changes) {
    std::vector<std::pair<std::string, Checkpoint>> groups;  // by what is said of them, in the order of A
    for (const Change* change : changes) {
      const std::string what = describe(screen_, *change);
      if (!is_folded()) {
        line(Color::yellow, '~', change->name, 1, what);
        continue;
      }
      auto group = std::ranges::find(groups, what, &std::pair<std::string, Checkpoint>::first);
      if (group == groups.end()) group = groups.insert(group, {what, {}});
      group->second.tensors.insert(change->name, view_.sides->a.at(change->name));
    }
    for (const auto& [what, some] : groups) write_patterns(Color::yellow, '~', some, what);
  }

  void write_with_numbers(const std::vector<const Change*>& changes) {
    const std::uint64_t all = changes.size();
    const bool is_cut = view_.top || is_folded();
    const std::uint64_t shown = is_cut ? std::min(all, view_.top.value_or(kTopOnTerminal)) : all;
    if (shown > 0 && screen_.interactive) {
      write_table({changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(shown)});
    } else {
      for (std::uint64_t i = 0; i < shown; ++i)
        line(Color::yellow, '~', changes[i]->name, 1, describe(screen_, *changes[i]));
    }
    if (shown == all || session_.quiet) return;
    const std::string more = fmt::format("  {} more changed; --top {} shows all", screen_.count(all - shown), all);
    out_.line(screen_.paint(Color::dim, labelled(screen_, "", more)));
  }

  // Columns that say nothing are empty, and take no room.
  void write_table(const std::vector<const Change*>& changes) {
    const auto has_any = [&](const auto& what) { return std::ranges::any_of(changes, what); };
    const bool has_dtypes = has_any([](const Change* change) { return change->what == What::dtype; });
    const bool has_nan = has_any([](const Change* change) { return change->nan_mismatch != 0; });
    const bool has_ranks = has_any([](const Change* change) { return change->rank.has_value(); });
    const bool has_most = has_any([](const Change* change) { return change->max_at.has_value(); });
    Table table(out_, screen_,
                {{.color = Color::yellow, .narrowest = 40},
                 {.right = true},
                 {.right = true, .drop = 1},
                 {.right = true, .drop = 2},
                 {.drop = 6},
                 {.right = true, .drop = 4},
                 {.drop = 5},
                 {},
                 {.drop = 3}});
    table.header({"  changed", "change", "cosine", has_most ? "by at most" : "", has_most ? "at" : "", "differ",
                  has_dtypes ? "dtypes" : "", has_nan ? "NaN" : "", has_ranks ? "rank" : ""});
    for (const Change* change : changes) table.row(cells_of(*change));
    table.finish();
  }

  std::vector<std::string> cells_of(const Change& change) const {
    const auto& numbers = change.numbers;
    const auto relative = numbers ? numbers->relative_change() : std::nullopt;
    const auto cosine = numbers ? numbers->cosine() : std::nullopt;
    const double share = static_cast<double>(change.different) / static_cast<double>(change.compared);
    return {"~ " + escape_for_terminal(change.name),
            change.nan_mismatch != 0 ? "NaN"
            : change.is_broken()     ? "Inf"
            : relative               ? percent(screen_, *relative)
                                     : "-",
            cosine ? screen_.number(*cosine, 6) : "-",
            change.max_at ? screen_.number(change.max_abs) : "",
            change.max_at ? index_text(*change.max_at) : "",
            change.different == change.compared ? "all"
            : share > 0.9995                    ? "> 99.9 %"
                                                : percent(screen_, share),
            change.what == What::dtype
                ? fmt::format("{} {} {}", name(change.dtype_a), arrow(screen_), name(change.dtype_b))
                : "",
            change.nan_mismatch == 0 ? "" : screen_.count(change.nan_mismatch) + " on one side",
            change.rank ? rank_text(screen_, *change.rank) : ""};
  }

  Output& out_;
  const Terminal& screen_;
  const Session& session_;
  const DiffView& view_;
  const DiffReport& report_;
};

}  // namespace

std::string percent(const Terminal& screen, double share) { return screen.number(100 * share, 3) + " %"; }

void write_diff_lines(Session& session, const DiffView& view, const DiffReport& report) {
  DiffLines(session, view, report).write();
}

}  // namespace ballast::cli
