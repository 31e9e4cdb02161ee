// diff: shows the differences between two checkpoints.
#include <ballast/diff.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/align.hpp>
#include <ballast/diff_adapters.hpp>
#include <ballast/error.hpp>
#include <ballast/recipe.hpp>
#include <ballast/remedy.hpp>

#include "../diff_report.hpp"
#include "../options.hpp"
#include "adapter_verbs.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kNotGiven = UINT64_MAX;

struct Arguments {
  std::string a, b, names;
  double tolerance = 0, atol = 0, rtol = 0;
  bool skip_values = false, ignore_dtype = false, effective_rank = false;
  std::uint64_t top = kNotGiven;
  NameOptions name_options;
};

void check_arguments(const Arguments& arguments) {
  if (arguments.a == "-" && arguments.b == "-")
    throw Error(Errc::invalid_argument, "standard input cannot be both sides").hint("name a file for one of them");
  const std::pair<double, std::string_view> ranges[] = {
      {arguments.tolerance, "--tolerance"}, {arguments.atol, "--atol"}, {arguments.rtol, "--rtol"}};
  for (const auto& [value, flag] : ranges) {
    if (!(value >= 0))
      throw Error(Errc::invalid_argument, fmt::format("{} must be 0 or more", flag))
          .hint(fmt::format("for example {} 1e-6", flag));
  }
  if (arguments.tolerance > 0 && arguments.atol > 0)
    throw Error(Errc::invalid_argument, "--tolerance and --atol mean the same").hint("leave one of the two out");
}

AlignNames align_names(const std::string& text) {
  constexpr std::pair<std::string_view, AlignNames> kStyles[] = {{"", AlignNames::automatic},
                                                                 {"keep", AlignNames::keep},
                                                                 {"hf", AlignNames::huggingface},
                                                                 {"gguf", AlignNames::gguf}};
  for (const auto& [name, style] : kStyles) {
    if (text == name) return style;
  }
  throw Error(Errc::invalid_argument, fmt::format("--names: there are no names of the style \"{}\"", text))
      .hint("hf for Hugging Face's, gguf for llama.cpp's, keep for those that there are");
}

// The tensors to compare: both sides under the same names, and those of them that are selected.
Aligned align_sides(Session& session, const Arguments& arguments, Checkpoint a, Checkpoint b) {
  const AlignNames names = align_names(arguments.names);
  Aligned sides = align(std::move(a), std::move(b), {names, arguments.name_options, session.open_options()});
  say_notes(session, sides.notes);
  if (sides.a.quantization.has_value() != sides.b.quantization.has_value())
    session.note(fmt::format("{} is quantized and kept in parts: with --dequantize its weights are compared",
                             escape_for_terminal(sides.a.quantization ? arguments.a : arguments.b)));

  // A selection that leaves nothing on one side is a difference, not an error.
  Checkpoint selected[] = {select(sides.a, session.selection), select(sides.b, session.selection)};
  const bool is_empty = selected[0].size() + selected[1].size() == 0;
  if (!is_empty) say_unmatched(session, session.selection, {&sides.a, &sides.b});
  if (is_empty && session.selection != Selection{})
    throw Error(Errc::not_found, "no tensor of either side is selected")
        .about("")
        .hint(Advice::mention(Remedy::ls) + " lists the names");
  sides.a = std::move(selected[0]);
  sides.b = std::move(selected[1]);
  return sides;
}

bool is_lora(const Checkpoint& checkpoint) {
  constexpr std::string_view kParts[] = {"lora_A", "lora_a", "lora_down", "lora.down"};
  return std::ranges::any_of(checkpoint, [&](const auto& named) {
    return std::ranges::any_of(kParts, [&](std::string_view part) { return named.name.find(part) != named.name.npos; });
  });
}

std::string scale_text(const Adapter& adapter) {
  const AdapterSummary summary = summarize(adapter);
  if (summary.scales.empty()) return "no known rank";
  return fmt::format("rank {}, alpha {}{}", summary.scales[0].rank, summary.scales[0].alpha,
                     summary.scales.size() > 1 ? " and others" : "");
}

// Whether the tensors themselves are asked for, or numbers that only tensors have.
bool is_about_tensors(const Session& session, const Arguments& arguments, const DiffOptions& options) {
  return !arguments.names.empty() || arguments.effective_rank || session.selection != Selection{} ||
         !session.root.empty() || options.tolerance > 0 || options.rtol > 0 || options.ignore_dtype ||
         arguments.a == "-" || arguments.b == "-";
}

// Two LoRAs have other matrices even if they say the same, so what they add to each weight is compared. Nothing if an
// adapter does not fit together: its tensors can be compared all the same.
std::optional<AdapterComparison> compare_loras(Session& session, const Arguments& arguments,
                                               const DiffOptions& options) {
  try {
    const Adapter a = open_adapter(session, arguments.a, nullptr, {}),
                  b = open_adapter(session, arguments.b, nullptr, {});
    // A file of PEFT's without its configuration does not say by how much its products count.
    const auto says_scaling = [](const Adapter& each) {
      return each.dialect != AdapterDialect::peft || each.notes.empty();
    };
    if (!says_scaling(a) || !says_scaling(b)) return std::nullopt;
    AdapterComparison compared = diff_adapters(a, b, options);
    session.note(
        fmt::format("A is a LoRA of {}; B is one of {}. What they add to each weight is compared; "
                    "--names keep compares their tensors",
                    scale_text(a), scale_text(b)));
    return compared;
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled || error.code() == Errc::io || error.code() == Errc::unsafe) throw;
    session.note(fmt::format("compared tensor by tensor: {}", error.message()));
    return std::nullopt;
  }
}

// Many models keep all experts of a layer in one tensor: the question was about them, too.
void say_what_has_no_rank(Session& session, const DiffReport& report) {
  const auto is_stack = [](const DiffReport::Change& change) { return change.shape_a.rank() > 2 && change.numbers; };
  const auto stacks = std::ranges::count_if(report.changed, is_stack);
  if (stacks == 0) return;
  const auto& first = *std::ranges::find_if(report.changed, is_stack);
  session.note(
      fmt::format("{} of more than two dimensions (stacks of experts, convolutions), such as \"{}\": no rank "
                  "is said of these",
                  plural(static_cast<std::uint64_t>(stacks), "changed tensor"), first.name));
}

int run_diff(Session& session, const Arguments& arguments) {
  check_arguments(arguments);
  DiffView view{arguments.a, arguments.b, {}, {}, nullptr, {}, !arguments.skip_values};
  if (arguments.top != kNotGiven) view.top = arguments.top;
  Checkpoint a = open_data(session, arguments.a), b = open_data(session, arguments.b);
  say_notes(session, a);
  say_notes(session, b);
  view.file_type_a = file_type_of(a);
  view.file_type_b = file_type_of(b);

  auto bar = session.progress_bar();
  const DiffOptions options{.values = !arguments.skip_values,
                            .tolerance = arguments.tolerance + arguments.atol,
                            .threads = session.threads,
                            .progress = bar.callback(),
                            .limits = session.limits,
                            .rtol = arguments.rtol,
                            .ignore_dtype = arguments.ignore_dtype,
                            .ranks = arguments.effective_rank};
  std::optional<AdapterComparison> loras;
  const bool are_in_files = !a.files.empty() && !b.files.empty();
  if (are_in_files && is_lora(a) && is_lora(b) && !is_about_tensors(session, arguments, options))
    loras = compare_loras(session, arguments, options);
  const Aligned sides = loras ? Aligned{std::move(loras->a), std::move(loras->b), {}}
                              : align_sides(session, arguments, std::move(a), std::move(b));
  view.sides = &sides;
  const DiffReport report = loras ? std::move(loras->report) : diff(sides.a, sides.b, options);
  bar.clear();
  if (arguments.effective_rank) say_what_has_no_rank(session, report);
  session.json ? write_diff_json(session, view, report) : write_diff_text(session, view, report);
  return report.equal() ? 0 : info(Errc::mismatch).exit_code;
}

}  // namespace

void add_diff(Command& verb, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  verb.positional("A", &arguments->a, "a checkpoint");
  verb.positional("B", &arguments->b, "another");
  verb.group("What counts as equal");
  verb.option("--atol", "X", &arguments->atol, "values are equal if |a - b| <= atol + rtol * |b|, as in NumPy");
  verb.option("--rtol", "X", &arguments->rtol, "the same: a part of the second checkpoint's value");
  verb.option("--tolerance", "X", &arguments->tolerance, "the same as --atol");
  verb.flag("--ignore-dtype", &arguments->ignore_dtype, "tensors of two dtypes are equal if their values are");
  verb.flag("--no-values", &arguments->skip_values, "compare names, dtypes and shapes only");
  verb.group("Which tensors, under which names");
  add_selection_options(verb, session);
  verb.option("--names", "STYLE", &arguments->names,
              "both sides under the names of Hugging Face or llama.cpp: hf, gguf; keep takes all as they are");
  add_name_options(verb, arguments->name_options);
  verb.group("What is shown");
  verb.option("--top", "N", &arguments->top, "so many changed tensors, the largest change first");
  verb.flag("--effective-rank", &arguments->effective_rank, "the rank of each changed matrix: a merged LoRA shows");
  add_json_option(verb, session);
  verb.examples =
      "  ballast diff a.safetensors b.safetensors\n  ballast diff base/ tuned/ --include '*attn*' --effective-rank\n"
      "  ballast diff Llama-3.2-1B/ model-Q4_K_M.gguf --top 20\n";
  verb.run = [arguments, &session] { return run_diff(session, *arguments); };
}

}  // namespace ballast::cli
