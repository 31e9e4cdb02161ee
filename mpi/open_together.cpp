#include "open_together.hpp"

#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/remote.hpp>

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "opening_record.hpp"

namespace ballast::mpi {
namespace {

using RecordPtr = std::shared_ptr<OpeningRecord>;
using CountPtr = std::shared_ptr<ReadCount>;
using FactsPtr = std::shared_ptr<const FileRecord>;
using Question = OpeningRecord::Question;

// A source whose bytes are never in place: every read is seen, and counted.
class CountedSource : public Source {
 public:
  CountedSource(FactsPtr facts, CountPtr count) : facts_(std::move(facts)), count_(std::move(count)) {}

  const std::string& name() const override { return facts_->name; }
  std::uint64_t size_bytes() const override { return facts_->size_bytes; }
  std::uint64_t bytes_per_round_trip() const override { return facts_->bytes_per_round_trip; }
  std::string identity() const override { return facts_->identity; }
  std::optional<FileLocation> location(std::uint64_t offset) const override {
    return facts_->location ? std::optional(FileLocation{*facts_->location, offset}) : std::nullopt;
  }

 protected:
  void count(std::uint64_t bytes) const { *count_ += bytes; }
  const FileRecord& facts() const noexcept { return *facts_; }

 private:
  FactsPtr facts_;
  CountPtr count_;
};

class RecordingSource final : public CountedSource {
 public:
  RecordingSource(SourcePtr source, std::string opened_as, FileRecord facts, RecordPtr record, CountPtr count)
      : CountedSource(std::make_shared<const FileRecord>(std::move(facts)), std::move(count)),
        source_(std::move(source)),
        opened_as_(std::move(opened_as)),
        record_(std::move(record)) {}

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    source_->read(offset, out);
    count(out.size());
    record_->add_bytes(opened_as_, offset, out);
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    source_->read_many(ranges);
    for (const ReadRange& range : ranges) {
      count(range.out.size());
      record_->add_bytes(opened_as_, range.offset, range.out);
    }
  }
  void prefetch(std::span<const ByteRange> ranges) const override { source_->prefetch(ranges); }
  void release(std::uint64_t offset, std::uint64_t size) const override { source_->release(offset, size); }
  void check_unchanged() const override { source_->check_unchanged(); }

 private:
  SourcePtr source_;
  std::string opened_as_;
  RecordPtr record_;
};

FileRecord facts_of(const Source& source) {
  FileRecord facts;
  facts.name = source.name();
  facts.identity = source.identity();
  facts.size_bytes = source.size_bytes();
  facts.bytes_per_round_trip = source.bytes_per_round_trip();
  if (auto location = source.location(0)) facts.location = std::move(location->file);
  return facts;
}

// Files of which names are made, but nothing is read.
class NamedFiles : public Files {
 public:
  explicit NamedFiles(FilesPtr files) : files_(std::move(files)) {}

  std::string inside(const std::string& folder, const std::string& file) const override {
    return files_->inside(folder, file);
  }
  std::string beside(const std::string& name, const std::string& file) const override {
    return files_->beside(name, file);
  }
  unsigned opens_at_once() const override { return files_->opens_at_once(); }

 protected:
  const Files& files() const noexcept { return *files_; }
  const FilesPtr& files_ptr() const noexcept { return files_; }

 private:
  FilesPtr files_;
};

class RecordingFiles final : public NamedFiles {
 public:
  RecordingFiles(FilesPtr files, RecordPtr record, CountPtr count)
      : NamedFiles(std::move(files)), record_(std::move(record)), count_(std::move(count)) {}

  SourcePtr open(const std::string& name) const override {
    try {
      SourcePtr source = files().open(name);
      FileRecord facts = facts_of(*source);
      record_->add_file(name, facts);
      return std::make_shared<RecordingSource>(std::move(source), name, std::move(facts), record_, count_);
    } catch (const Error&) {
      FileRecord none;
      none.failure = pack_failure(std::current_exception());
      record_->add_file(name, std::move(none));
      throw;
    }
  }
  bool exists(const std::string& name) const override { return noted(Question::exists, name, files().exists(name)); }
  bool prefers_whole(const std::string& folder) const override {
    return noted(Question::prefers_whole, folder, files().prefers_whole(folder));
  }
  bool leaves_its_folder(const std::string& name) const override {
    return noted(Question::leaves_its_folder, name, files().leaves_its_folder(name));
  }
  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    auto names = files().list(name);
    record_->add_list(name, names);
    return names;
  }
  std::vector<std::string> notes(const std::string& name) const override {
    auto found = files().notes(name);
    record_->add_notes(name, found);
    return found;
  }

 private:
  bool noted(Question question, const std::string& name, bool answer) const {
    record_->add_answer(question, name, answer);
    return answer;
  }

  RecordPtr record_;
  CountPtr count_;
};

// Opens the file itself only when bytes are asked for that were not recorded.
class ReplayedSource final : public CountedSource {
 public:
  ReplayedSource(FilesPtr files, std::string opened_as, FactsPtr facts, CountPtr count)
      : CountedSource(std::move(facts), std::move(count)), files_(std::move(files)), opened_as_(std::move(opened_as)) {}

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (facts().bytes.read(offset, out)) return;
    opened().read(offset, out);
    count(out.size());
  }
  void read_many(std::span<const ReadRange> ranges) const override {
    std::vector<ReadRange> unknown;
    for (const ReadRange& range : ranges) {
      if (!facts().bytes.read(range.offset, range.out)) unknown.push_back(range);
    }
    if (unknown.empty()) return;
    opened().read_many(unknown);
    for (const ReadRange& range : unknown) count(range.out.size());
  }
  // While the target is opened, what comes next is mostly known already.
  void prefetch(std::span<const ByteRange> ranges) const override {
    if (is_open()) opened().prefetch(ranges);
  }
  void release(std::uint64_t offset, std::uint64_t size) const override {
    if (is_open()) opened().release(offset, size);
  }
  void check_unchanged() const override {
    if (is_open()) opened().check_unchanged();
  }

 private:
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return source_ != nullptr;
  }
  const Source& opened() const {
    const std::lock_guard lock(mutex_);
    if (source_ == nullptr) {
      SourcePtr source = files_->open(opened_as_);
      if (source->size_bytes() != size_bytes()) {
        throw Error(Errc::changed, fmt::format("the file has {} bytes, and {} on the host of rank 0",
                                               source->size_bytes(), size_bytes()))
            .in(name())
            .hint("every rank must see the same files");
      }
      source_ = std::move(source);
    }
    return *source_;
  }

  FilesPtr files_;
  std::string opened_as_;
  mutable std::mutex mutex_;
  mutable SourcePtr source_;
};

class ReplayedFiles final : public NamedFiles {
 public:
  ReplayedFiles(FilesPtr files, RecordPtr record, CountPtr count)
      : NamedFiles(std::move(files)), record_(std::move(record)), count_(std::move(count)) {}

  SourcePtr open(const std::string& name) const override {
    const FileRecord* file = record_->file(name);
    if (file == nullptr) {
      SourcePtr source = files().open(name);
      FileRecord facts = facts_of(*source);
      return std::make_shared<RecordingSource>(std::move(source), name, std::move(facts), record_, count_);
    }
    if (!file->failure.empty()) throw_failure(file->failure, 0, 1, nullptr);
    return std::make_shared<ReplayedSource>(files_ptr(), name, FactsPtr(record_, file), count_);
  }
  bool exists(const std::string& name) const override {
    const auto answer = record_->answer(Question::exists, name);
    return answer ? *answer : files().exists(name);
  }
  bool prefers_whole(const std::string& folder) const override {
    const auto answer = record_->answer(Question::prefers_whole, folder);
    return answer ? *answer : files().prefers_whole(folder);
  }
  bool leaves_its_folder(const std::string& name) const override {
    const auto answer = record_->answer(Question::leaves_its_folder, name);
    return answer ? *answer : files().leaves_its_folder(name);
  }
  std::optional<std::vector<std::string>> list(const std::string& name) const override {
    const auto* names = record_->list(name);
    return names != nullptr ? *names : files().list(name);
  }
  std::vector<std::string> notes(const std::string& name) const override {
    const auto* found = record_->notes(name);
    return found != nullptr ? *found : files().notes(name);
  }

 private:
  RecordPtr record_;
  CountPtr count_;
};

}  // namespace

OpenedTogether open_together(const Communicator& ranks, const std::string& target, const OpenOptions& given,
                             const std::function<void(const Checkpoint&)>& examine) {
  OpenedTogether opened;
  const auto count = std::make_shared<ReadCount>(0);
  OpenOptions options;
  Bytes packed;
  ranks.together([&] {
    options = options_for(target, given);
    options.cache = Cache::ignore;
    if (ranks.rank() != 0) return;
    const auto record = std::make_shared<OpeningRecord>();
    OpenOptions recording = options;
    recording.files = std::make_shared<RecordingFiles>(options.files, record, count);
    opened.checkpoint = open(target, recording);
    if (examine) examine(opened.checkpoint);
    record->close();
    packed = record->packed();
    record->forget_bytes();
  });
  packed = ranks.broadcast(std::move(packed));
  ranks.together([&] {
    if (ranks.rank() == 0) return;
    const auto record = std::make_shared<OpeningRecord>(packed);
    options.files = std::make_shared<ReplayedFiles>(options.files, record, count);
    opened.checkpoint = open(target, options);
    record->forget_bytes();
  });
  opened.opening_bytes = count->load();
  opened.read = count;
  return opened;
}

}  // namespace ballast::mpi
