#include "save/engine.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/progress_meter.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "io/open_file.hpp"
#include "kernels/crc32.hpp"
#include "kernels/digest.hpp"
#include "save/digests.hpp"
#include "save/job_record.hpp"
#include "save/jobs.hpp"
#include "save/source_check.hpp"
#include "tensor/element_layout.hpp"
#include "tensor/read_ahead.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostBuffer = std::uint64_t{8} << 20;  // a larger buffer does not make a write faster
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;
// Bytes of a mapped range that are written at once. They stay in the second-level cache from their checksum to their
// write; and even without a checksum, writes of 4 MiB from a map cost half as much again (ext4, Linux 6.18).
constexpr std::uint64_t kDirectStep = std::uint64_t{512} << 10;

unsigned thread_count(const SaveOptions& options) { return options.threads ? options.threads : available_threads(); }

class FileWriter {
 public:
  FileWriter(const SavePlan::File& file, io::Sink& sink, const SaveOptions& options, ProgressMeter& meter)
      : file_(file),
        sink_(sink),
        buffer_bytes_(buffer_bytes_each(options)),
        limits_(options.limits),
        meter_(meter),
        overflows_(file.items.size()) {
    if (options.digests || options.verify) digests_.emplace(file);
  }

  // If `is_far`, a later run continues this one.
  void write(ThreadPool& pool, SourceCheck& check, bool is_far) {
    for (const SavePlan::Item& item : file_.items) wants_crc32_.push_back(file_.finish || check.wants(item));
    if (!is_far) sink_.reserve(file_.size_bytes);
    std::vector<Job> jobs = make_jobs(file_, buffer_bytes_, is_far ? std::vector<ByteRange>() : share_blocks());
    std::optional<JobRecord> record;
    if (is_far) record.emplace(sink_, file_.size_bytes, jobs.size(), buffer_bytes_);
    sink_.write_at(0, file_.head);
    meter_.add(file_.head.size());
    buffers_.resize(pool.size());
    const auto was_done = [&](std::size_t i) { return record && record->is_done(i); };
    ReadAhead ahead(jobs.size(), [&](std::size_t i, Announcement& reads) {
      if (was_done(i)) return;
      for (const Job::Part& part : jobs[i].parts) reads.add(*part.tensor, {part.first, part.size});
    });
    pool.run(jobs.size(), [&](std::size_t i, unsigned worker) {
      ahead.begin(i);
      if (was_done(i)) return look_again(jobs[i], buffers_[worker]);
      run(jobs[i], buffers_[worker]);
      if (record && !has_overflows(jobs[i])) record->note(i);
    });

    const std::vector<std::uint32_t> crc32s = checksums(jobs);
    for (std::size_t i = 0; i < crc32s.size(); ++i) {
      if (check.wants(file_.items[i])) check.found(file_.items[i], crc32s[i]);
    }
    if (file_.finish) pieces_ = file_.finish(crc32s);
    write_pieces(pool);
  }

  // Checks that the sink gives back what was written.
  void verify(ThreadPool& pool, ProgressMeter& meter) {
    sink_.settle();
    compare({0, file_.head});
    for (const SavePlan::Piece& piece : pieces_) compare(piece);
    digests_->compare(sink_, pool, meter);
  }

  // Whether values of the file overflowed: a later run that continues this job has to find that out anew.
  bool has_overflows() const {
    return std::ranges::any_of(overflows_, [](const Overflows& overflows) { return overflows.count != 0; });
  }

  void report(SaveReport& report) const {
    for (std::size_t i = 0; i < file_.items.size(); ++i) {
      const SavePlan::Item& item = file_.items[i];
      if (overflows_[i].count != 0)
        report.overflows.push_back({item.name, item.dtype.value_or(item.tensor.dtype()), overflows_[i]});
    }
    if (!digests_) return;
    for (std::size_t i = 0; i < file_.items.size(); ++i) {
      if (file_.items[i].is_tensor) report.digests.push_back({file_.items[i].name, digests_->of(i)});
    }
  }

 private:
  // Shares the ranges that the file system need not copy. An item whose checksum is wanted must be read anyway, so it
  // is written as usual.
  std::vector<ByteRange> share_blocks() {
    std::vector<ByteRange> shared(file_.items.size());
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const auto& [name, tensor, offset, is_tensor, dtype] = file_.items[i];
      if (wants_crc32_[i] || digests_ || !tensor.is_contiguous() || tensor.nbytes() == 0) continue;
      const auto place = tensor.storage()->location();
      if (!place || descriptor_of(*place) < 0) continue;
      shared[i] = sink_.share(descriptor_of(*place), place->offset + tensor.offset(), offset, tensor.nbytes());
      meter_.add(shared[i].size);
    }
    return shared;
  }

  void run(Job& job, std::vector<std::byte>& buffer) {
    switch (job.kind) {
      case Job::Kind::direct: return write_direct(job.parts.front(), buffer);
      case Job::Kind::gathered: return write_gathered(job, buffer);
      case Job::Kind::streamed: return write_streamed(job, buffer);
    }
  }

  // What an earlier run wrote is read only if somebody wants to know what it is.
  void look_again(Job& job, std::vector<std::byte>& buffer) {
    for (Job::Part& part : job.parts) {
      for (std::uint64_t done = 0; done < part.size && (wants_crc32_[part.item] || digests_); done += kDirectStep) {
        buffer.resize(std::max<std::size_t>(buffer.size(), kDirectStep));
        const auto bytes = std::span(buffer).first(std::min(kDirectStep, part.size - done));
        sink_.read_back(part.offset + done, bytes);
        look_at(part, done, bytes);
      }
      meter_.add(part.size);
    }
  }

  bool has_overflows(const Job& job) {
    const std::lock_guard lock(overflows_mutex_);
    return std::ranges::any_of(job.parts, [&](const Job::Part& part) { return overflows_[part.item].count != 0; });
  }

  void write_direct(Job::Part& part, std::vector<std::byte>& buffer) {
    const auto bytes = part.tensor->bytes().subspan(part.first, part.size);
    for (std::uint64_t done = 0, step = 0; done < part.size; done += step) {
      // A write that ends at the end of a page of the file is a fifth faster. But digests need whole leaves.
      step = digests_ ? kDirectStep : kDirectStep - (part.offset + done) % kDirectStep;
      step = std::min(step, part.size - done);
      const auto piece = bytes.subspan(done, step);
      if (wants_crc32_[part.item] || digests_) look_at_mapped(part, done, piece);
      write_mapped(part, done, piece, buffer);
    }
    done_with(part);
  }

  void write_mapped(const Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes,
                    std::vector<std::byte>& buffer) {
    try {
      sink_.write_at(part.offset + done, in_step(part, done, bytes, buffer));
    } catch (const Error& error) {
      // The sink knows only that its source is gone; the source knows its own name.
      if (error.code() == Errc::changed) part.tensor->storage()->check_unchanged();
      throw;
    }
  }

  // If the destination of the bytes is a few bytes further into its page than their source, the processor takes every
  // load for one that waits for the store before it, and copying takes three times as long. Such bytes are first copied
  // to a buffer that is half a page away.
  std::span<const std::byte> in_step(const Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes,
                                     std::vector<std::byte>& buffer) {
    constexpr std::uint64_t kPage = 4096, kTooNear = 64;
    const std::uint64_t to = part.offset + done;
    const std::uint64_t further = (to - reinterpret_cast<std::uintptr_t>(bytes.data())) % kPage;
    if (further == 0 || further >= kTooNear) return bytes;
    if (buffer.size() < bytes.size() + kPage) buffer.resize(bytes.size() + kPage);
    const std::uint64_t shift = (to + kPage / 2 - reinterpret_cast<std::uintptr_t>(buffer.data())) % kPage;
    const auto copy = std::span(buffer).subspan(shift, bytes.size());
    part.tensor->storage()->read(part.tensor->offset() + part.first + done, copy);
    return copy;
  }

  void look_at_mapped(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes) {
    Job::Part looked_at = part;  // a visit that is abandoned half-way must not leave half a checksum
    const bool is_guarded = part.tensor->storage()->visit(part.tensor->offset() + part.first + done, bytes.size(),
                                                          [&](auto visited) { look_at(looked_at, done, visited); });
    if (!is_guarded) look_at(looked_at, done, bytes);
    part.crc32 = looked_at.crc32;
  }

  // Takes the bytes of the part from `done` on; the bytes before them were taken already.
  void look_at(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes) {
    if (wants_crc32_[part.item]) part.crc32 = kernels::crc32(part.crc32, bytes);
    if (digests_) digests_->take(part.item, part.first + done, bytes);
  }

  void write_gathered(Job& job, std::vector<std::byte>& buffer) {
    if (buffer.size() < job.bytes) buffer.resize(job.bytes);
    std::map<const Storage*, std::vector<Storage::Range>> by_storage;  // each storage is asked once
    std::uint64_t filled = 0;
    for (const Job::Part& part : job.parts) {
      const auto out = std::span(buffer).subspan(filled, part.size);
      filled += part.size;
      if (part.tensor->is_contiguous() && part.tensor->storage()->derivation().from.empty()) {
        by_storage[part.tensor->storage().get()].push_back({part.tensor->offset() + part.first, out});
      } else {
        read(part, *part.tensor, part.first, out);
      }
    }
    for (const auto& [storage, ranges] : by_storage) storage->read_many(ranges);
    write_runs(job, std::span(buffer).first(job.bytes));
    for (const Job::Part& part : job.parts) done_with(part);
  }

  // Reads bytes of a tensor that may be made as they are read: overflows and errors are reported for this tensor.
  void read(const Job::Part& part, const Tensor& source, std::uint64_t first, std::span<std::byte> out) {
    const OverflowCounter counter;
    try {
      source.read(first, out);
    } catch (const Error& error) {
      const std::string& name = file_.items[part.item].name;
      if (error.code() != Errc::unsupported || name.empty()) throw;
      throw error.saying(fmt::format("tensor {}: {}", quote(name), error.message())).about(name);
    }
    const Overflows found = counter.total();
    if (found.count == 0) return;
    const std::lock_guard lock(overflows_mutex_);
    overflows_[part.item].add(found);
  }

  // Parts that are neighbours in the file are written at once.
  void write_runs(Job& job, std::span<const std::byte> bytes) {
    std::uint64_t begin = 0, end = 0;
    for (std::size_t i = 0; i < job.parts.size(); ++i) {
      Job::Part& part = job.parts[i];
      look_at(part, 0, bytes.subspan(end, part.size));
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
        read(part, source, piece.first, out);
        look_at(part, done, out);
        sink_.write_at(piece.offset, out);
        done_with(piece);
        done += piece.size;
      }
    }
  }

  // Reading a strided view jumps back and forth, which a stream cannot do, so everything that the view covers is read
  // into memory.
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
    part.tensor->release({part.first, part.size});
    meter_.add(part.size);
  }

  // The checksum of every item, combined from those of its parts, in whatever order these were written. 0 for items
  // whose checksum nobody wants.
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

  void write_pieces(ThreadPool& pool) {
    pool.run(pieces_.size(), [&](std::size_t i, unsigned) {
      sink_.write_at(pieces_[i].offset, pieces_[i].bytes);
      meter_.add(pieces_[i].bytes.size());
    });
  }

  void compare(const SavePlan::Piece& piece) const {
    std::vector<std::byte> found(piece.bytes.size());
    sink_.read_back(piece.offset, found);
    if (found == piece.bytes) return;
    throw Error(Errc::io, "does not come back as it was written")
        .in(file_.path)
        .at_byte(piece.offset)
        .hint("the disk or the memory of this machine is failing; nothing was replaced");
  }

  const SavePlan::File& file_;
  io::Sink& sink_;
  std::uint64_t buffer_bytes_;
  const Limits& limits_;
  ProgressMeter& meter_;
  std::vector<bool> wants_crc32_;                // of each item
  std::optional<Digests> digests_;               // if somebody asks for digests
  std::vector<SavePlan::Piece> pieces_;          // those that depend on the data: see SavePlan::File::finish
  std::vector<std::vector<std::byte>> buffers_;  // one for each worker, allocated when first needed
  std::mutex overflows_mutex_;
  std::vector<Overflows> overflows_;  // of each item
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

// Whether a file that an earlier run finished is there and unchanged. The file is read for that only if somebody may
// have written to it since, if the system was started again, or if the user wants everything read back.
bool is_still_good(const io::Sink& sink, const SavePlan::File& file, ThreadPool& pool, const SaveOptions& options) {
  const auto mark = sink.kept();
  if (!mark || *mark == io::Sink::kUnfinished) return false;
  if (sink.is_untouched() && !options.verify) return true;
  ProgressMeter meter(options.progress, "checking what is there", file.size_bytes);
  try {
    return digest_of(sink, file.size_bytes, pool, &meter) == *mark;
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) throw;
    return false;  // too short or unreadable: the file is written anew
  }
}

void refuse_full_disk(const SavePlan& plan, std::span<const std::unique_ptr<io::Sink>> sinks) {
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

}  // namespace

std::uint64_t buffer_bytes_each(const SaveOptions& options) {
  // Buffers hold whole leaves, so that every part of an item begins with a leaf.
  const std::uint64_t each = options.memory_bytes / thread_count(options);
  return std::clamp(each / kernels::kLeafBytes * kernels::kLeafBytes, kLeastBuffer, kMostBuffer);
}

namespace {

// After a job was cancelled, the files that are finished stay, and the next run begins with them. If the sources are
// far away, what there is of the others stays, too.
void leave_finished_files(Error& error, std::span<const std::unique_ptr<io::Sink>> sinks, bool is_far) {
  const auto finished = std::ranges::count_if(sinks, [](const auto& sink) { return sink->leave_to_next_run(); });
  if (finished == 0) return;
  if (is_far) return void(error.hint("what is written is kept; starting the same again goes on from there"));
  error.hint(fmt::format("{} of {} files are finished and kept; starting the same again goes on with the others",
                         finished, sinks.size()));
}

SaveReport write_all(const SavePlan& plan, const SaveOptions& options,
                     std::span<const std::unique_ptr<io::Sink>> sinks) {
  const auto start = std::chrono::steady_clock::now();
  const auto storages = storages_of(plan);
  for (const Storage* storage : storages) storage->prepare(options.progress);

  refuse_full_disk(plan, sinks);

  ThreadPool pool(thread_count(options));
  ProgressMeter meter(options.progress, "writing", plan.total_bytes());
  ProgressMeter reading(options.progress, "reading back", plan.data_bytes);
  SourceCheck check(plan);
  SaveReport report;
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    const SavePlan::File& file = plan.files[i];
    report.files.push_back({file.path, file.size_bytes});
    if (is_still_good(*sinks[i], file, pool, options)) {
      ++report.files_kept;
      meter.add(file.size_bytes);
      continue;
    }
    FileWriter writer(file, *sinks[i], options, meter);
    writer.write(pool, check, plan.is_far);
    if (options.verify) writer.verify(pool, reading);
    writer.report(report);
    if (!plan.key.empty() && !writer.has_overflows()) sinks[i]->keep(digest_of(*sinks[i], file.size_bytes, pool));
  }
  check.read_the_rest(pool, buffer_bytes_each(options), options.progress);
  for (const Storage* storage : storages) storage->check_unchanged();
  report.notes = plan.notes;
  std::ranges::move(check.conclude(options.strict), std::back_inserter(report.notes));
  std::ranges::move(overflow_notes(report.overflows, options.strict), std::back_inserter(report.notes));
  for (const auto& sink : sinks) sink->commit();

  report.data_bytes = plan.data_bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

SaveReport write_files(const SavePlan& plan, const SaveOptions& options, const SinkFactory& create) {
  // Creates all files first, so that the tenth shard cannot stop a long job half-way.
  std::vector<std::unique_ptr<io::Sink>> sinks;
  for (const SavePlan::File& file : plan.files) sinks.push_back(create(file.path));
  try {
    return write_all(plan, options, sinks);
  } catch (Error& error) {
    const bool can_go_on = error.code() == Errc::cancelled || (plan.is_far && error.code() == Errc::io);
    if (can_go_on) leave_finished_files(error, sinks, plan.is_far);
    throw;
  }
}

}  // namespace ballast
