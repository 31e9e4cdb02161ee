#include "report.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include "adapter_modules.hpp"
#include "model_document.hpp"
#include "page.hpp"
#include "refusal.hpp"
#include "texts.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kManyTensors = 10'000;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 10;  // of each file beside the weights

std::string without_query(const std::string& target) {
  return is_remote(target) ? target.substr(0, target.find_first_of("?#")) : target;
}

// Scanning needs the file itself, which is not always there: standard input, a state dict of a Python program.
std::string scan_or_nothing(const Session& session, const std::string& target, const std::string& shown) {
  try {
    return scan_document(session, target, shown);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    return "";
  }
}

// The document, or a refusal in its place, as a server would send it.
std::string made_or_refused(Report& report, std::string_view what, const std::function<std::string()>& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    report.notes.push_back(fmt::format("the page does not show {}: {}", what, error.what()));
    return refusal_document(error);
  }
}

}  // namespace

Report make_report(const Session& session, Subject subject, std::uint64_t sample, const Progress& progress) {
  const std::vector<std::string> targets = std::exchange(subject.targets, {});
  for (const std::string& target : targets) subject.targets.push_back(without_query(target));
  for (Checkpoint& side : subject.originals) side.target = without_query(side.target);
  if (subject.base) subject.base->target = without_query(subject.base->target);

  Report report;
  std::vector<std::pair<std::string, std::string>> documents;
  documents.emplace_back("model", model_document(session, subject, PageKind::report));
  std::string title;
  for (std::size_t side = 0; side < subject.sides.size(); ++side) {
    const Checkpoint& checkpoint = subject.sides[side];
    const StatsSample how{sample, checkpoint.size() > kManyTensors ? 32u : 64u};
    documents.emplace_back(fmt::format("info-{}", side), info_document(subject, side));
    PackedStats columns = stats_columns(session, checkpoint, how, progress);
    documents.emplace_back(fmt::format("stats-{}", side), std::move(columns.document));
    if (columns.unreadable != 0)
      report.notes.push_back(fmt::format("{} of {} could not be read: the page says why",
                                         plural(columns.unreadable, "tensor"), subject.targets[side]));
    documents.emplace_back(fmt::format("texts-{}", side), texts_document(session, subject, side, kMostTextBytes));
    if (std::string found = scan_or_nothing(session, targets[side], subject.targets[side]); !found.empty())
      documents.emplace_back(fmt::format("scan-{}", side), std::move(found));
    title += (title.empty() ? "" : " and ") + subject.targets[side];
  }
  if (subject.sides.size() == 2)
    documents.emplace_back(
        "diff", made_or_refused(report, "the difference", [&] { return diff_document(session, subject, progress); }));
  if (subject.adapter) {
    documents.emplace_back("adapter", adapter_document(subject));
    documents.emplace_back("modules", made_or_refused(report, "how much each module changes",
                                                      [&] { return modules_document(session, subject, progress); }));
  }
  report.page = report_page(documents, title);
  return report;
}

}  // namespace ballast::cli
