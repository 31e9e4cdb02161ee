#include "save/file_writer.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <set>

#include "core/read_counter.hpp"
#include "io/open_file.hpp"
#include "kernels/crc32.hpp"
#include "tensor/read_ahead.hpp"

namespace ballast {
namespace {

Looks looks_at(const SavePlan::File& file, const SourceCheck& check, Digests* digests) {
  Looks looks{{}, digests};
  for (const SavePlan::Item& item : file.items) looks.wants_crc32.push_back(file.finish || check.wants(item));
  return looks;
}

std::vector<std::uint64_t> sizes_of(std::span<const Job> jobs) {
  std::vector<std::uint64_t> sizes;
  for (const Job& job : jobs) sizes.push_back(job.bytes);
  return sizes;
}

}  // namespace

FileWriter::FileWriter(const SavePlan::File& file, io::Sink& sink, Workshop& shop)
    : file_(file),
      sink_(sink),
      shop_(shop),
      team_(shop.team),
      digests_(shop.options.digests || shop.options.verify ? std::optional<Digests>(file) : std::nullopt),
      looks_(looks_at(file, shop.check, digests_ ? &*digests_ : nullptr)),
      writer_(file, sink, shop.sizes.buffer, shop.options.limits, looks_, shop.writing, shop.pool.size()) {}

void FileWriter::write() {
  std::vector<Job> jobs = begin();
  const Deal deal(team_, sizes_of(jobs), shop_.loads);
  carry_out(jobs, deal);
  hear_of_all(jobs, deal);

  const std::vector<std::uint32_t> crc32s = checksums(jobs);
  for (std::size_t i = 0; i < crc32s.size(); ++i) {
    if (shop_.check.wants(file_.items[i])) shop_.check.found(file_.items[i], crc32s[i]);
  }
  if (team_.is_first()) finish(crc32s);
}

// Sizes the file, and cuts what is to be written of it into jobs.
std::vector<Job> FileWriter::begin() {
  if (shop_.plan.is_far) {
    auto jobs = make_jobs(file_, shop_.sizes);
    record_.emplace(sink_, team_, file_.size_bytes, jobs.size(), shop_.sizes);
    return jobs;
  }
  sink_.reserve(file_.size_bytes);
  std::vector<ByteRange> shared(file_.items.size());
  if (team_.is_first()) shared = share_blocks();
  tell(team_, std::span(shared));
  return make_jobs(file_, shop_.sizes, shared);
}

// Shares the ranges that the file system need not copy. An item whose checksum is wanted must be read anyway, so it is
// written as usual.
std::vector<ByteRange> FileWriter::share_blocks() {
  std::vector<ByteRange> shared(file_.items.size());
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const auto& [name, tensor, offset, is_tensor, dtype] = file_.items[i];
    if (looks_.wants_crc32[i] || digests_ || !tensor.is_contiguous() || tensor.nbytes() == 0) continue;
    const auto place = tensor.storage()->location();
    if (!place || descriptor_of(*place) < 0) continue;
    shared[i] = sink_.share(descriptor_of(*place), place->offset + tensor.offset(), offset, tensor.nbytes());
    shop_.writing.add(shared[i].size);
  }
  return shared;
}

// The jobs of this member.
void FileWriter::carry_out(std::vector<Job>& jobs, const Deal& deal) {
  if (team_.is_first()) {
    sink_.write_at(0, file_.head);
    shop_.writing.add(file_.head.size());
  }
  const ReadsOfMember reads(team_);
  prepare(jobs, deal);
  const auto mine = deal.mine();
  const auto was_done = [&](std::size_t job) { return record_ && record_->is_done(job); };
  ReadAhead ahead(mine.size(), [&](std::size_t i, Announcement& reads) {
    if (was_done(mine[i])) return;
    for (const Job::Part& part : jobs[mine[i]].parts) reads.add(*part.tensor, {part.first, part.size});
  });
  shop_.pool.run(mine.size(), [&](std::size_t i, unsigned worker) {
    ahead.begin(i);
    Job& job = jobs[mine[i]];
    if (was_done(mine[i])) return writer_.look_again(job, worker);
    writer_.carry_out(job, worker);
    if (record_ && !writer_.has_overflows(job)) record_->note(mine[i]);
  });
}

// In a team, every member prepares the storages of its own jobs. One process prepared all before it began.
void FileWriter::prepare(const std::vector<Job>& jobs, const Deal& deal) {
  if (team_.size() == 1) return;
  std::set<const Storage*> storages;
  for (const std::size_t job : deal.mine()) {
    for (const Job::Part& part : jobs[job].parts) storages.insert(part.tensor->storage().get());
  }
  for (const Storage* storage : storages) storage->prepare(progress_of(team_, shop_.options.progress));
}

// Whatever the members found out about the bytes that they wrote, each learns of all.
void FileWriter::hear_of_all(std::vector<Job>& jobs, const Deal& deal) {
  if (&team_ == &Team::alone()) return;
  team_.count({.written = deal.my_bytes(), .held = writer_.held_bytes()});
  if (team_.size() == 1) return;

  sink_.sync();  // nobody else can make sure that these bytes are on the disk
  Message message;
  for (const std::size_t job : deal.mine()) {
    for (const Job::Part& part : jobs[job].parts) add_finding(message, part);
  }
  message.bytes(bytes_of(writer_.overflows()));
  const auto messages = team_.exchange(message);
  std::vector<Cursor> from(messages.begin(), messages.end());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (Job::Part& part : jobs[i].parts) read_finding(from[deal.owner(i)], part);
  }
  std::ranges::fill(writer_.overflows(), Overflows{});
  std::vector<Overflows> more(file_.items.size());
  for (Cursor& in : from) {
    read_values(in, std::span(more));
    for (std::size_t i = 0; i < more.size(); ++i) writer_.overflows()[i].add(more[i]);
  }
}

void FileWriter::add_finding(Message& message, const Job::Part& part) {
  if (looks_.wants_crc32[part.item]) message.number(part.crc32);
  if (digests_) message.bytes(bytes_of(digests_->leaves(part.item, part.first, part.size)));
}

void FileWriter::read_finding(Cursor& in, Job::Part& part) {
  if (looks_.wants_crc32[part.item]) part.crc32 = static_cast<std::uint32_t>(in.u64("checksum"));
  if (digests_) read_values(in, digests_->leaves(part.item, part.first, part.size));
}

// The checksum of every item, combined from those of its parts, in whatever order these were written. 0 for items whose
// checksum nobody wants.
std::vector<std::uint32_t> FileWriter::checksums(std::span<const Job> jobs) const {
  std::vector<const Job::Part*> parts;
  for (const Job& job : jobs) {
    for (const Job::Part& part : job.parts) {
      if (looks_.wants_crc32[part.item]) parts.push_back(&part);
    }
  }
  std::sort(parts.begin(), parts.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::vector<std::uint32_t> crc32s(file_.items.size());
  for (const Job::Part* part : parts)
    crc32s[part->item] = kernels::combine_crc32(crc32s[part->item], part->crc32, part->size);
  return crc32s;
}

void FileWriter::finish(std::span<const std::uint32_t> crc32s) {
  if (!file_.finish) return;
  pieces_ = file_.finish(crc32s);
  shop_.pool.run(pieces_.size(), [&](std::size_t i, unsigned) {
    sink_.write_at(pieces_[i].offset, pieces_[i].bytes);
    shop_.writing.add(pieces_[i].bytes.size());
  });
}

void FileWriter::verify() {
  sink_.settle();
  if (team_.is_first()) {
    compare({0, file_.head});
    for (const SavePlan::Piece& piece : pieces_) compare(piece);
  }
  digests_->compare(sink_, team_, shop_.pool, shop_.reading_back);
}

void FileWriter::compare(const SavePlan::Piece& piece) const {
  std::vector<std::byte> found(piece.bytes.size());
  sink_.read_back(piece.offset, found);
  if (found == piece.bytes) return;
  throw Error(Errc::io, "does not come back as it was written")
      .in(file_.path)
      .at_byte(piece.offset)
      .hint("the disk or the memory of this machine is failing; nothing was replaced");
}

// A later run that continues this job has to find out anew whether values of the file overflowed.
bool FileWriter::has_overflows() const {
  return std::ranges::any_of(writer_.overflows(), [](const Overflows& overflows) { return overflows.count != 0; });
}

void FileWriter::keep() {
  if (shop_.plan.key.empty() || has_overflows()) return;
  team_.exchange({});  // the first member has finished the file
  const std::uint64_t digest = digest_of(sink_, file_.size_bytes, team_, shop_.pool);
  if (team_.is_first()) sink_.keep(digest);
}

void FileWriter::report(SaveReport& report) const {
  const auto overflows = writer_.overflows();
  for (std::size_t i = 0; i < file_.items.size(); ++i) {
    const SavePlan::Item& item = file_.items[i];
    if (overflows[i].count != 0)
      report.overflows.push_back(
          {item.name, overflows[i].dtype.value_or(item.dtype.value_or(item.tensor.dtype())), overflows[i]});
  }
  if (!digests_) return;
  for (std::size_t i = 0; i < file_.items.size(); ++i) {
    if (file_.items[i].is_tensor) report.digests.push_back({file_.items[i].name, digests_->of(i)});
  }
}

}  // namespace ballast
