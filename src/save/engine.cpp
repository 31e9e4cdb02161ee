#include "save/engine.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "kernels/crc32.hpp"
#include "save/jobs.hpp"
#include "save/source_check.hpp"
#include "tensor/element_layout.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostBuffer = std::uint64_t{8} << 20;  // more does not make a write faster
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;
// Of a mapped range. It stays in the second-level cache from its checksum to its write; and even without a checksum,
// writes of 4 MiB from a map cost half as much again (ext4, Linux 6.18).
constexpr std::uint64_t kDirectStep = std::uint64_t{512} << 10;

unsigned thread_count(const SaveOptions& options) { return options.threads ? options.threads : available_threads(); }

class FileWriter {
 public:
  FileWriter(const SavePlan::File& file, io::Sink& sink, const SaveOptions& options, ProgressMeter& meter)
      : file_(file), sink_(sink), buffer_bytes_(buffer_bytes_each(options)), limits_(options.limits), meter_(meter) {}

  void write(ThreadPool& pool, SourceCheck& check) {
    for (const SavePlan::Item& item : file_.items) wants_crc32_.push_back(file_.finish || check.wants(item));
    sink_.reserve(file_.size_bytes);
    sink_.write_at(0, file_.head);
    meter_.add(file_.head.size());
    std::vector<Job> jobs = make_jobs(file_, buffer_bytes_);
    buffers_.resize(pool.size());
    pool.run(jobs.size(), [&](std::size_t i, unsigned worker) { run(jobs[i], buffers_[worker]); });

    const std::vector<std::uint32_t> crc32s = checksums(jobs);
    for (std::size_t i = 0; i < crc32s.size(); ++i) {
      if (check.wants(file_.items[i])) check.found(file_.items[i], crc32s[i]);
    }
    if (file_.finish) write_pieces(pool, file_.finish(crc32s));
  }

 private:
  void run(Job& job, std::vector<std::byte>& buffer) {
    switch (job.kind) {
      case Job::Kind::direct: return write_direct(job.parts.front());
      case Job::Kind::gathered: return write_gathered(job, buffer);
      case Job::Kind::streamed: return write_streamed(job, buffer);
    }
  }

  void write_direct(Job::Part& part) {
    const auto bytes = part.tensor->bytes().subspan(part.first, part.size);
    for (std::uint64_t done = 0; done < part.size; done += kDirectStep) {
      const auto piece = bytes.subspan(done, std::min(kDirectStep, part.size - done));
      if (wants_crc32_[part.item]) add_mapped_crc32(part, done, piece);
      write_mapped(part, done, piece);
    }
    done_with(part);
  }

  void write_mapped(const Job::Part& part, std::uint64_t skip, std::span<const std::byte> bytes) {
    try {
      sink_.write_at(part.offset + skip, bytes);
    } catch (const Error& error) {
      // The sink knows that its source is gone; the source knows its name.
      if (error.code() == Errc::changed) part.tensor->storage()->check_unchanged();
      throw;
    }
  }

  static void add_mapped_crc32(Job::Part& part, std::uint64_t skip, std::span<const std::byte> bytes) {
    std::uint32_t crc32 = part.crc32;
    const bool is_guarded =
        part.tensor->storage()->visit(part.tensor->offset() + part.first + skip, bytes.size(),
                                      [&](auto visited) { crc32 = kernels::crc32(part.crc32, visited); });
    part.crc32 = is_guarded ? crc32 : kernels::crc32(part.crc32, bytes);
  }

  void write_gathered(Job& job, std::vector<std::byte>& buffer) {
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
    write_runs(job, std::span(buffer).first(job.bytes));
    for (const Job::Part& part : job.parts) done_with(part);
  }

  // Parts that follow each other in the file are one write.
  void write_runs(Job& job, std::span<const std::byte> bytes) {
    std::uint64_t begin = 0, end = 0;
    for (std::size_t i = 0; i < job.parts.size(); ++i) {
      Job::Part& part = job.parts[i];
      if (wants_crc32_[part.item]) part.crc32 = kernels::crc32(0, bytes.subspan(end, part.size));
      end += part.size;
      if (i + 1 < job.parts.size() && job.parts[i + 1].offset == part.offset + part.size) continue;
      sink_.write_at(part.offset + part.size - (end - begin), bytes.subspan(begin, end - begin));
      begin = end;
    }
  }

  void write_streamed(Job& job, std::vector<std::byte>& buffer) {
    if (buffer.size() < buffer_bytes_) buffer.resize(buffer_bytes_);
    for (Job::Part& part : job.parts) {
      const Tensor source = part.tensor->is_contiguous() ? *part.tensor : held_whole(*part.tensor);
      for (std::uint64_t done = 0; done < part.size;) {
        Job::Part piece = part;
        piece.first += done;
        piece.offset += done;
        piece.size = std::min(buffer_bytes_, part.size - done);
        const auto out = std::span(buffer).first(piece.size);
        source.read(piece.first, out);
        if (wants_crc32_[part.item]) part.crc32 = kernels::crc32(part.crc32, out);
        sink_.write_at(piece.offset, out);
        done_with(piece);
        done += piece.size;
      }
    }
  }

  // A strided view jumps to and fro, which a stream cannot: all of it that the view looks at, in memory.
  Tensor held_whole(const Tensor& view) const {
    const ElementLayout layout = element_layout(view.dtype(), view.shape(), view.strides());
    const std::uint64_t size = layout.low_bytes + layout.high_bytes;
    if (size > limits_.max_inflated_bytes) {
      throw Error(Errc::limit, "a strided tensor takes " + format_bytes(size) +
                                   " from a compressed stream, more than " + format_bytes(limits_.max_inflated_bytes) +
                                   " that may be held in memory")
          .hint("unpack the file and pack it again without compression");
    }
    std::vector<std::byte> bytes(size);
    view.storage()->read(view.offset() - layout.low_bytes, bytes);
    return Tensor(view.dtype(), view.shape(), view.strides(), memory_storage(std::move(bytes)), layout.low_bytes);
  }

  void done_with(const Job::Part& part) {
    if (part.tensor->is_contiguous()) part.tensor->storage()->release(part.tensor->offset() + part.first, part.size);
    meter_.add(part.size);
  }

  // Of every item, from those of its parts, whoever wrote them and when. 0 for items of which nobody wants one.
  std::vector<std::uint32_t> checksums(std::span<const Job> jobs) const {
    std::vector<const Job::Part*> parts;
    for (const Job& job : jobs) {
      for (const Job::Part& part : job.parts) {
        if (wants_crc32_[part.item]) parts.push_back(&part);
      }
    }
    std::sort(parts.begin(), parts.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
    std::vector<std::uint32_t> crc32s(file_.items.size());
    for (const Job::Part* part : parts)
      crc32s[part->item] = kernels::combine_crc32(crc32s[part->item], part->crc32, part->size);
    return crc32s;
  }

  void write_pieces(ThreadPool& pool, const std::vector<SavePlan::Piece>& pieces) {
    pool.run(pieces.size(), [&](std::size_t i, unsigned) {
      sink_.write_at(pieces[i].offset, pieces[i].bytes);
      meter_.add(pieces[i].bytes.size());
    });
  }

  const SavePlan::File& file_;
  io::Sink& sink_;
  std::uint64_t buffer_bytes_;
  const Limits& limits_;
  ProgressMeter& meter_;
  std::vector<bool> wants_crc32_;                // of each item
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
  SourceCheck check(plan);
  std::vector<std::unique_ptr<io::Sink>> sinks;
  SaveReport report;
  for (const SavePlan::File& file : plan.files) {
    sinks.push_back(create(file.path));
    FileWriter(file, *sinks.back(), options, meter).write(pool, check);
    report.files.push_back({file.path, file.size_bytes});
  }
  check.read_the_rest(pool, buffer_bytes_each(options), options.progress);
  for (const Storage* storage : storages) storage->check_unchanged();
  report.notes = plan.notes;
  std::ranges::move(check.conclude(options.strict), std::back_inserter(report.notes));
  for (const auto& sink : sinks) sink->commit();

  report.data_bytes = plan.data_bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace ballast
