#include "save/job_writer.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/read_counter.hpp"
#include "core/text.hpp"
#include "kernels/crc32.hpp"
#include "tensor/element_layout.hpp"

namespace ballast {
namespace {

// Bytes of a mapped range that are written at once. They stay in the second-level cache from their checksum to their
// write; and even without a checksum, writes of 4 MiB from a map cost half as much again (ext4, Linux 6.18).
constexpr std::uint64_t kDirectStep = std::uint64_t{512} << 10;

}  // namespace

JobWriter::JobWriter(const SavePlan::File& file, io::Sink& sink, std::uint64_t buffer_bytes, const Limits& limits,
                     const Looks& looks, ProgressMeter& meter, unsigned workers)
    : file_(file),
      sink_(sink),
      buffer_bytes_(buffer_bytes),
      limits_(limits),
      looks_(looks),
      meter_(meter),
      buffers_(workers),
      overflows_(file.items.size()) {}

std::uint64_t JobWriter::held_bytes() const noexcept {
  std::uint64_t held = 0;
  for (const Buffer& buffer : buffers_) held += buffer.size();
  return held;
}

void JobWriter::carry_out(Job& job, unsigned worker) {
  Buffer& buffer = buffers_[worker];
  switch (job.kind) {
    case Job::Kind::direct: return write_direct(job.parts.front(), buffer);
    case Job::Kind::gathered: return write_gathered(job, buffer);
    case Job::Kind::streamed: return write_streamed(job, buffer);
  }
}

// What an earlier run wrote is read only if somebody wants to know what it is.
void JobWriter::look_again(Job& job, unsigned worker) {
  Buffer& buffer = buffers_[worker];
  for (Job::Part& part : job.parts) {
    for (std::uint64_t done = 0; done < part.size && is_looked_at(part); done += kDirectStep) {
      buffer.resize(std::max<std::size_t>(buffer.size(), kDirectStep));
      const auto bytes = std::span(buffer).first(std::min(kDirectStep, part.size - done));
      sink_.read_back(part.offset + done, bytes);
      look_at(part, done, bytes);
    }
    meter_.add(part.size);
  }
}

bool JobWriter::has_overflows(const Job& job) {
  const std::lock_guard lock(overflows_mutex_);
  return std::ranges::any_of(job.parts, [&](const Job::Part& part) { return overflows_[part.item].count != 0; });
}

void JobWriter::write_direct(Job::Part& part, Buffer& buffer) {
  const auto bytes = part.tensor->bytes().subspan(part.first, part.size);
  for (std::uint64_t done = 0, step = 0; done < part.size; done += step) {
    // A write that ends at the end of a page of the file is a fifth faster. But digests need whole leaves.
    step = looks_.digests ? kDirectStep : kDirectStep - (part.offset + done) % kDirectStep;
    step = std::min(step, part.size - done);
    const auto piece = bytes.subspan(done, step);
    if (is_looked_at(part))
      look_at_mapped(part, done, piece);
    else
      count_read(piece.size());
    write_mapped(part, done, piece, buffer);
  }
  done_with(part);
}

void JobWriter::write_mapped(const Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes,
                             Buffer& buffer) {
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
std::span<const std::byte> JobWriter::in_step(const Job::Part& part, std::uint64_t done,
                                              std::span<const std::byte> bytes, Buffer& buffer) {
  constexpr std::uint64_t kPage = 4096, kTooNear = 64;
  const std::uint64_t to = part.offset + done;
  const std::uint64_t further = (to - reinterpret_cast<std::uintptr_t>(bytes.data())) % kPage;
  if (further == 0 || further >= kTooNear) return bytes;
  if (buffer.size() < bytes.size() + kPage) buffer.resize(bytes.size() + kPage);
  const std::uint64_t shift = (to + kPage / 2 - reinterpret_cast<std::uintptr_t>(buffer.data())) % kPage;
  const auto copy = std::span(buffer).subspan(shift, bytes.size());
  const ReadsCountedFor nobody(nullptr);  // the bytes are counted already
  part.tensor->storage()->read(part.tensor->offset() + part.first + done, copy);
  return copy;
}

void JobWriter::look_at_mapped(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes) {
  Job::Part looked_at = part;  // a visit that is abandoned half-way must not leave half a checksum
  const bool is_guarded = part.tensor->storage()->visit(part.tensor->offset() + part.first + done, bytes.size(),
                                                        [&](auto visited) { look_at(looked_at, done, visited); });
  if (!is_guarded) look_at(looked_at, done, bytes);
  part.crc32 = looked_at.crc32;
}

// Takes the bytes of the part from `done` on; the bytes before them were taken already.
void JobWriter::look_at(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes) {
  if (looks_.wants_crc32[part.item]) part.crc32 = kernels::crc32(part.crc32, bytes);
  if (looks_.digests) looks_.digests->take(part.item, part.first + done, bytes);
}

void JobWriter::write_gathered(Job& job, Buffer& buffer) {
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
void JobWriter::read(const Job::Part& part, const Tensor& source, std::uint64_t first, std::span<std::byte> out) {
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
void JobWriter::write_runs(Job& job, std::span<const std::byte> bytes) {
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

void JobWriter::write_streamed(Job& job, Buffer& buffer) {
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
Tensor JobWriter::held_whole(const Tensor& view) const {
  const ElementLayout layout = element_layout(view.dtype(), view.shape(), view.strides());
  const std::uint64_t size = layout.low_bytes + layout.high_bytes;
  if (size > limits_.max_inflated_bytes) {
    throw Error(Errc::limit, "a strided tensor takes " + format_bytes(size) + " from a compressed stream, more than " +
                                 format_bytes(limits_.max_inflated_bytes) + " that may be held in memory")
        .hint("unpack the file and pack it again without compression");
  }
  std::vector<std::byte> bytes(size);
  view.storage()->read(view.offset() - layout.low_bytes, bytes);
  return Tensor(view.dtype(), view.shape(), view.strides(), memory_storage(std::move(bytes)), layout.low_bytes);
}

void JobWriter::done_with(const Job::Part& part) {
  part.tensor->release({part.first, part.size});
  meter_.add(part.size);
}

}  // namespace ballast
