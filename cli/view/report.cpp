#include "report.hpp"

#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "adapter_modules.hpp"
#include "model_document.hpp"
#include "page.hpp"
#include "texts.hpp"

namespace ballast::cli {
namespace {

constexpr std::uint64_t kManyTensors = 10'000;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 10;  // of each file beside the weights

// Scanning needs the file itself, which is not always there: standard input, a state dict of a Python program.
std::string scan_or_nothing(const Session& session, const Subject& subject, std::size_t side) {
  try {
    return scan_document(session, subject, side);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string make_report(const Session& session, const Subject& subject, std::uint64_t sample,
                        const Progress& progress) {
  std::vector<std::pair<std::string, std::string>> documents;
  documents.emplace_back("model", model_document(session, subject, PageKind::report));
  std::string title;
  for (std::size_t side = 0; side < subject.sides.size(); ++side) {
    const Checkpoint& checkpoint = subject.sides[side];
    const StatsSample how{sample, checkpoint.size() > kManyTensors ? 32u : 64u};
    documents.emplace_back(fmt::format("info-{}", side), info_document(subject, side));
    documents.emplace_back(fmt::format("stats-{}", side), stats_columns(session, checkpoint, how, progress));
    documents.emplace_back(fmt::format("texts-{}", side), texts_document(session, subject, side, kMostTextBytes));
    if (std::string found = scan_or_nothing(session, subject, side); !found.empty())
      documents.emplace_back(fmt::format("scan-{}", side), std::move(found));
    title += (title.empty() ? "" : " and ") + subject.targets[side];
  }
  if (subject.sides.size() == 2) documents.emplace_back("diff", diff_document(session, subject, progress));
  if (subject.adapter) {
    documents.emplace_back("adapter", adapter_document(subject));
    documents.emplace_back("modules", modules_document(session, subject, progress));
  }
  return report_page(documents, title);
}

}  // namespace ballast::cli
