#include "save/engine.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/deal.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "kernels/digest.hpp"
#include "save/file_writer.hpp"
#include "save/plan_key.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostBuffer = std::uint64_t{8} << 20;  // a larger buffer does not make a write faster
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;

using Sinks = std::vector<std::unique_ptr<io::Sink>>;

unsigned thread_count(const SaveOptions& options) { return options.threads ? options.threads : available_threads(); }

std::set<const Storage*> storages_of(const SavePlan& plan) {
  std::set<const Storage*> storages;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      if (item.tensor.storage()) storages.insert(item.tensor.storage().get());
    }
  }
  return storages;
}

// Nobody may write what another member would not.
void check_that_plans_agree(const SavePlan& plan, Team& team) {
  if (team.size() == 1) return;
  const SourceList sources = sources_of(plan);
  sources.check_files(team);
  std::uint64_t first = plan_digest(plan, sources);
  const std::uint64_t own = first;
  tell(team, std::span(&first, 1));
  if (own != first)
    throw Error(Errc::mismatch, "the processes of this job would not write the same: what they were told differs")
        .in(plan.files.front().path)
        .hint("give all of them the same arguments, the same version of this program, and files that all of them see");
}

// Creates all files first, so that the tenth shard cannot stop a long job half-way. The first member creates them.
Sinks open_sinks(const SavePlan& plan, Team& team, const SinkFactory& create, const JoinFactory& join) {
  Sinks sinks;
  Message message;
  for (const SavePlan::File& file : plan.files) {
    if (!team.is_first()) break;
    sinks.push_back(create(file.path));
    message.text(sinks.back()->temporary_path());
  }
  const auto messages = team.exchange(message);
  Cursor names(messages.front());
  for (const SavePlan::File& file : plan.files) {
    if (team.is_first()) break;
    sinks.push_back(join(file.path, std::string(read_text(names))));
  }
  return sinks;
}

void refuse_full_disk(const SavePlan& plan, const Sinks& sinks) {
  std::uint64_t needed = 0, free = UINT64_MAX;
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    needed += sinks[i]->kept() ? 0 : plan.files[i].size_bytes;
    free = std::min(free, sinks[i]->free_bytes());
  }
  if (needed <= free) return;
  throw Error(Errc::io, fmt::format("the disk is too full: {} bytes ({}) are needed, {} are free", needed,
                                    format_bytes(needed), format_bytes(free)))
      .in(plan.files.front().path)
      .hint("free some space, or write to another disk");
}

// Whether a file that an earlier run finished is there and unchanged. The file is read for that only if somebody may
// have written to it since, if the system was started again, or if the user wants everything read back.
bool is_still_good(const io::Sink& sink, const SavePlan::File& file, ThreadPool& pool, const SaveOptions& options) {
  const auto mark = sink.kept();
  if (!mark || *mark == io::Sink::kUnfinished) return false;
  if (sink.is_untouched() && !options.verify) return true;
  ProgressMeter meter(options.progress, "checking what is there", file.size_bytes);
  try {
    return digest_of(sink, file.size_bytes, Team::alone(), pool, &meter) == *mark;
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    return false;  // too short or unreadable: the file is written anew
  }
}

// Writes a file, or finds that an earlier run has finished it.
void write_file(const SavePlan::File& file, io::Sink& sink, Workshop& shop, SaveReport& report) {
  report.files.push_back({file.path, file.size_bytes});
  bool is_there = shop.team.is_first() && is_still_good(sink, file, shop.pool, shop.options);
  tell(shop.team, std::span(&is_there, 1));
  if (is_there) {
    ++report.files_kept;
    return shop.writing.add(file.size_bytes / shop.team.size());
  }
  FileWriter writer(file, sink, shop);
  writer.write();
  if (shop.options.verify) writer.verify();
  writer.report(report);
  writer.keep();
}

SaveReport write_all(const SavePlan& plan, SaveOptions options, Team& team, const Sinks& sinks) {
  const auto start = std::chrono::steady_clock::now();
  options.progress = progress_of(team, std::move(options.progress));
  const auto storages = storages_of(plan);
  for (const Storage* storage : storages) {
    if (team.size() == 1) storage->prepare(options.progress);
  }
  if (team.is_first()) refuse_full_disk(plan, sinks);

  const Buffers buffers = buffers_of(plan, options);
  ThreadPool pool(buffers.threads);
  const std::uint64_t buffer_bytes = least_of(team, buffers.bytes_each);
  ProgressMeter writing(options.progress, "writing", plan.total_bytes());
  ProgressMeter reading_back(options.progress, "reading back", plan.data_bytes);
  SourceCheck check(plan);
  const JobSizes sizes = job_sizes(buffer_bytes, plan.data_bytes, team.size(), options.digests || options.verify);
  Workshop shop{plan, options, team, sizes, pool, check, writing, reading_back};
  SaveReport report;
  for (std::size_t i = 0; i < plan.files.size(); ++i) write_file(plan.files[i], *sinks[i], shop, report);
  check.read_the_rest(team, pool, buffer_bytes, options.progress);

  for (const Storage* storage : storages) storage->check_unchanged();
  report.notes = plan.notes;
  std::ranges::move(check.conclude(options.strict), std::back_inserter(report.notes));
  std::ranges::move(overflow_notes(report.overflows, options.strict), std::back_inserter(report.notes));
  team.exchange({});  // nobody has found a reason not to
  for (const auto& sink : sinks) sink->commit();

  report.data_bytes = plan.data_bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

// After a job was cancelled, the files that are finished stay, and the next run begins with them. If the sources are
// far away, what there is of the others stays, too.
void leave_finished_files(Error& error, const Sinks& sinks, bool is_far) {
  const auto finished = std::ranges::count_if(sinks, [](const auto& sink) { return sink->leave_to_next_run(); });
  if (finished == 0) return;
  if (is_far) return void(error.hint("what is written is kept; starting the same again goes on from there"));
  error.hint(fmt::format("{} of {} files are finished and kept; starting the same again goes on with the others",
                         finished, sinks.size()));
}

}  // namespace

Buffers buffers_of(const SavePlan& plan, const SaveOptions& options) {
  // Buffers hold whole leaves, so that every part of an item can begin with a leaf.
  const auto clamped = [](std::uint64_t leaves) {
    return std::clamp(leaves * kernels::kLeafBytes, kLeastBuffer, kMostBuffer);
  };
  const unsigned threads = thread_count(options);
  const Buffers even{clamped(options.memory_bytes / threads / kernels::kLeafBytes), threads};
  const std::uint64_t granule = largest_granule(plan);
  const std::uint64_t whole = clamped((granule - 1) / kernels::kLeafBytes + 1);
  if (whole <= even.bytes_each || whole < granule || whole > options.memory_bytes) return even;
  return {whole, static_cast<unsigned>(std::min<std::uint64_t>(options.memory_bytes / whole, threads))};
}

SaveReport write_files(const SavePlan& plan, const SaveOptions& options, const SinkFactory& create,
                       const JoinFactory& join) {
  Team& team = team_of(options.team);
  SaveReport report;
  Sinks sinks;
  try {
    together(team, [&] {
      check_that_plans_agree(plan, team);
      sinks = open_sinks(plan, team, create, join);
      report = write_all(plan, options, team, sinks);
    });
  } catch (Error& error) {
    const bool can_go_on = error.code() == Errc::cancelled || (plan.is_far && error.code() == Errc::io);
    if (can_go_on) leave_finished_files(error, sinks, plan.is_far);
    throw;
  }
  return report;
}

}  // namespace ballast
