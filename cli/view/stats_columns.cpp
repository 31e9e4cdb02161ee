#include "stats_columns.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/stats.hpp>

#include "../json_writer.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

constexpr std::uint64_t kFewestRuns = 16;  // of neighbours, in a sample

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

SliceIndex up_to(std::uint64_t end) { return SliceIndex::range(0, static_cast<std::int64_t>(end)); }

SliceIndex every(std::uint64_t step) { return SliceIndex::range(0, std::nullopt, static_cast<std::int64_t>(step)); }

// Of a tensor whose values do not lie in a row: fewer indices of one dimension after the other, the last one last.
Tensor sample_of_view(const Tensor& tensor, std::uint64_t values) {
  Tensor part = tensor;
  for (std::size_t k = tensor.rank(); k-- > 0 && part.numel() > values;) {
    const std::size_t axis = k == 0 ? tensor.rank() - 1 : k - 1;
    Slice slice(axis, SliceIndex::range(0, std::nullopt));
    slice.push_back(every(std::min((part.numel() + values - 1) / values, part.shape()[axis])));
    part = part.slice(slice);
  }
  return part;
}

// Statistics of all that can be read: what fails is halved until the tensors are found that it is about.
void add_stats(std::span<const StateDict::Entry> tensors, const StatsOptions& options,
               std::vector<TensorStats>& results, std::size_t& unreadable) {
  try {
    StateDict together;
    together.reserve(tensors.size());
    for (const auto& [name, tensor] : tensors) together.insert(name, tensor);
    for (TensorStats& one : stats(Checkpoint(std::move(together)), options)) results.push_back(std::move(one));
  } catch (const Error& error) {
    // The others are about all of them: a server that fails, or a limit on everything together.
    if (error.code() != Errc::malformed && error.code() != Errc::unsupported && error.code() != Errc::mismatch) throw;
    if (tensors.size() == 1) {
      results.push_back({std::string(tensors[0].name), std::nullopt, error.what()});
      ++unreadable;
      return;
    }
    add_stats(tensors.first(tensors.size() / 2), options, results, unreadable);
    add_stats(tensors.subspan(tensors.size() / 2), options, results, unreadable);
  }
}

}  // namespace

// Of a tensor whose values lie in a row, whatever its shape: runs of neighbours, with the same odd number of runs
// between them, so that they do not meet the same columns of a matrix each time.
Tensor sample_of(const Tensor& tensor, std::uint64_t values) {
  if (values == 0 || tensor.numel() <= values || tensor.rank() == 0 || !tensor.has_data()) return tensor;
  if (!tensor.is_contiguous()) return sample_of_view(tensor, values);
  const std::uint64_t block = info(tensor.dtype()).block_elements;
  const std::uint64_t run = std::max<std::uint64_t>(1, values / kFewestRuns / block) * block;
  const std::uint64_t runs = tensor.numel() / run, wanted = std::max<std::uint64_t>(1, values / run);
  const std::uint64_t step = (runs + wanted - 1) / wanted | 1;
  const Tensor row = tensor.reshape({tensor.numel()});
  const Tensor whole_runs = runs * run == tensor.numel() ? row : row.slice({up_to(runs * run)});
  return whole_runs.reshape({runs, run}).slice({every(step)});
}

PackedStats stats_columns(const Session& session, const Checkpoint& checkpoint, const StatsSample& sample,
                          const Progress& progress) {
  const StatsOptions options{
      .bins = sample.bins, .threads = session.threads, .progress = progress, .limits = session.limits};
  std::vector<StateDict::Entry> tensors;
  tensors.reserve(checkpoint.size());
  for (const auto& [name, tensor] : checkpoint) tensors.push_back({name, sample_of(tensor, sample.values)});
  PackedStats columns;
  std::vector<TensorStats> results;
  results.reserve(tensors.size());
  add_stats(tensors, options, results, columns.unreadable);

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
  columns.document = std::move(text);
  return columns;
}

}  // namespace ballast::cli
