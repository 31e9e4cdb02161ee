#include "save/engine.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "save/jobs.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostBuffer = std::uint64_t{8} << 20;  // more does not make a write faster
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;

unsigned thread_count(const SaveOptions& options) { return options.threads ? options.threads : available_threads(); }

class FileWriter {
 public:
  FileWriter(const SavePlan::File& file, io::Sink& sink, std::uint64_t buffer_bytes, ProgressMeter& meter)
      : file_(file), sink_(sink), buffer_bytes_(buffer_bytes), meter_(meter) {}

  void write(ThreadPool& pool) {
    sink_.reserve(file_.size_bytes);
    sink_.write_at(0, file_.head);
    meter_.add(file_.head.size());
    const std::vector<Job> jobs = make_jobs(file_, buffer_bytes_);
    buffers_.resize(pool.size());
    pool.run(jobs.size(), [&](std::size_t i, unsigned worker) { run(jobs[i], buffers_[worker]); });
  }

 private:
  void run(const Job& job, std::vector<std::byte>& buffer) {
    switch (job.kind) {
      case Job::Kind::direct: return write_direct(job.parts.front());
      case Job::Kind::gathered: return write_gathered(job, buffer);
      case Job::Kind::streamed: return write_streamed(job, buffer);
    }
  }

  void write_direct(const Job::Part& part) {
    try {
      sink_.write_at(part.offset, part.tensor->bytes().subspan(part.first, part.size));
    } catch (const Error& error) {
      // The sink knows that its source is gone; the source knows its name.
      if (error.code() == Errc::changed) part.tensor->storage()->check_unchanged();
      throw;
    }
    done_with(part);
  }

  void write_gathered(const Job& job, std::vector<std::byte>& buffer) {
    if (buffer.size() < job.bytes) buffer.resize(job.bytes);
    std::map<const Storage*, std::vector<Storage::Range>> by_storage;  // each is asked once
    std::uint64_t filled = 0;
    for (const Job::Part& part : job.parts) {
      const auto out = std::span(buffer).subspan(filled, part.size);
      filled += part.size;
      if (part.tensor->is_contiguous()) {
        by_storage[part.tensor->storage().get()].push_back({part.tensor->offset() + part.first, out});
      } else {
        part.tensor->read(part.first, out);
      }
    }
    for (const auto& [storage, ranges] : by_storage) storage->read_many(ranges);
    sink_.write_at(job.parts.front().offset, std::span(buffer).first(job.bytes));
    for (const Job::Part& part : job.parts) done_with(part);
  }

  void write_streamed(const Job& job, std::vector<std::byte>& buffer) {
    if (buffer.size() < buffer_bytes_) buffer.resize(buffer_bytes_);
    for (const Job::Part& part : job.parts) {
      for (std::uint64_t done = 0; done < part.size;) {
        const Job::Part piece{part.tensor, part.first + done, std::min(buffer_bytes_, part.size - done),
                              part.offset + done};
        const auto out = std::span(buffer).first(piece.size);
        piece.tensor->read(piece.first, out);
        sink_.write_at(piece.offset, out);
        done_with(piece);
        done += piece.size;
      }
    }
  }

  void done_with(const Job::Part& part) {
    if (part.tensor->is_contiguous()) part.tensor->storage()->release(part.tensor->offset() + part.first, part.size);
    meter_.add(part.size);
  }

  const SavePlan::File& file_;
  io::Sink& sink_;
  std::uint64_t buffer_bytes_;
  ProgressMeter& meter_;
  std::vector<std::vector<std::byte>> buffers_;  // one a worker, grown when first needed
};

std::set<const Storage*> storages_of(const SavePlan& plan) {
  std::set<const Storage*> storages;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      if (item.tensor.storage()) storages.insert(item.tensor.storage().get());
    }
  }
  return storages;
}

}  // namespace

std::uint64_t buffer_bytes_each(const SaveOptions& options) {
  return std::clamp(options.memory_bytes / thread_count(options), kLeastBuffer, kMostBuffer);
}

SaveReport write_files(const SavePlan& plan, const SaveOptions& options, const SinkFactory& create) {
  const auto start = std::chrono::steady_clock::now();
  const auto storages = storages_of(plan);
  for (const Storage* storage : storages) storage->prepare(options.progress);

  ThreadPool pool(thread_count(options));
  ProgressMeter meter(options.progress, "writing", plan.total_bytes());
  std::vector<std::unique_ptr<io::Sink>> sinks;
  SaveReport report;
  for (const SavePlan::File& file : plan.files) {
    sinks.push_back(create(file.path));
    FileWriter(file, *sinks.back(), buffer_bytes_each(options), meter).write(pool);
    report.files.push_back({file.path, file.size_bytes});
  }
  for (const Storage* storage : storages) storage->check_unchanged();
  for (const auto& sink : sinks) sink->commit();

  report.data_bytes = plan.data_bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace ballast
