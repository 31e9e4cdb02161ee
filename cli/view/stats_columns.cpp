#include "stats_columns.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/stats.hpp>

#include "../json_writer.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct Column {
  const char* name;
  double Stats::*value;
};
constexpr Column kColumns[] = {
    {"min", &Stats::min}, {"max", &Stats::max}, {"mean", &Stats::mean}, {"std", &Stats::std}, {"l2", &Stats::l2}};

// Six digits are more than a picture shows. A number that is no number of JSON is null, as one that is not known.
std::string rounded(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }

// The square root of each count's share of the largest, in 64 steps: small bins stay visible, and 0 means none.
std::string letters_of(const std::vector<std::uint64_t>& histogram) {
  const std::uint64_t most = histogram.empty() ? 0 : std::ranges::max(histogram);
  std::string letters;
  for (const std::uint64_t count : histogram) {
    const double share = most == 0 ? 0 : static_cast<double>(count) / static_cast<double>(most);
    letters +=
        kLetters[count == 0 ? 0
                            : std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(63 * std::sqrt(share))))];
  }
  return letters;
}

// Counts that are 0 nearly everywhere: only the others, by the number of the tensor.
template <class Count>
void write_counts(JsonWriter& json, std::string_view key, const std::vector<TensorStats>& results, Count count) {
  json.key(key);
  json.begin_object();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].stats && count(*results[i].stats) != 0)
      json.field(std::string_view(std::to_string(i)), count(*results[i].stats));
  }
  json.end();
}

std::string column_text(const std::vector<TensorStats>& results, double Stats::*value) {
  std::string text;
  for (const TensorStats& result : results) {
    text += text.empty() ? "" : " ";
    text += result.stats && result.stats->finite() != 0 ? rounded((*result.stats).*value) : "null";
  }
  return text;
}

}  // namespace

Tensor sample_of(const Tensor& tensor, std::uint64_t values) {
  if (values == 0 || tensor.numel() <= values || tensor.rank() == 0 || !tensor.has_data()) return tensor;
  const std::uint64_t rows = tensor.shape()[0], row = tensor.numel() / rows;
  const std::uint64_t wanted = std::max<std::uint64_t>(1, values / std::max<std::uint64_t>(1, row));
  const std::uint64_t step = std::max<std::uint64_t>(1, rows / wanted);
  const bool in_blocks = tensor.rank() == 1 && info(tensor.dtype()).block_elements > 1;  // a block is not cut
  if (in_blocks || step == 1) return tensor;
  return tensor.slice({SliceIndex::range(0, std::nullopt, static_cast<std::int64_t>(step))});
}

std::string stats_columns(const Session& session, const Checkpoint& checkpoint, const StatsSample& sample,
                          const Progress& progress) {
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) tensors.insert(name, sample_of(tensor, sample.values));
  const std::vector<TensorStats> results =
      stats(Checkpoint(std::move(tensors)),
            {.bins = sample.bins, .threads = session.threads, .progress = progress, .limits = session.limits});

  std::string text;
  Output out(&text);
  JsonWriter json(out, "ballast.view.stats/1");
  json.field("sample", sample.values);
  json.field("bins", sample.bins);
  for (const auto& [name, value] : kColumns) json.field(std::string_view(name), column_text(results, value));
  write_counts(json, "zeros", results, [](const Stats& s) { return s.zeros; });
  write_counts(json, "nans", results, [](const Stats& s) { return s.nans; });
  write_counts(json, "infinities", results, [](const Stats& s) { return s.infinities; });
  write_counts(json, "counts", results, [&](const Stats& s) { return sample.values == 0 ? 0 : s.count; });
  json.key("why_not");
  json.begin_object();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].stats) json.field(std::string_view(std::to_string(i)), results[i].why_not);
  }
  json.end();
  std::string letters;
  for (const TensorStats& result : results) {
    std::string one = result.stats ? letters_of(result.stats->histogram) : std::string();
    one.resize(sample.bins, '0');
    letters += one;
  }
  json.field("histograms", letters);
  json.finish();
  out.flush();
  return text;
}

}  // namespace ballast::cli
