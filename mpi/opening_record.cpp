#include "opening_record.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "packing.hpp"

namespace ballast::mpi {

// Reading on makes parts longer, so this costs no more than the bytes that are added.
void KnownBytes::extend(std::vector<std::byte>& part, std::uint64_t at, std::span<const std::byte> bytes) {
  part.resize(std::max<std::size_t>(part.size(), static_cast<std::size_t>(at + bytes.size())));
  std::ranges::copy(bytes, part.begin() + static_cast<std::ptrdiff_t>(at));
}

void KnownBytes::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  // Every part that overlaps or touches the new one becomes a part of it.
  std::uint64_t begin = offset, end = offset + bytes.size();
  auto first = parts_.upper_bound(offset);
  if (first != parts_.begin() && std::prev(first)->first + std::prev(first)->second.size() >= offset) {
    --first;
    if (std::next(first) == parts_.end() || std::next(first)->first > end)
      return extend(first->second, offset - first->first, bytes);
  }
  auto last = first;
  for (; last != parts_.end() && last->first <= end; ++last) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->first + last->second.size());
  }
  std::vector<std::byte> joined(static_cast<std::size_t>(end - begin));
  for (auto part = first; part != last; ++part)
    std::ranges::copy(part->second, joined.begin() + static_cast<std::ptrdiff_t>(part->first - begin));
  std::ranges::copy(bytes, joined.begin() + static_cast<std::ptrdiff_t>(offset - begin));
  parts_.erase(first, last);
  parts_.emplace(begin, std::move(joined));
}

bool KnownBytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return true;
  const auto after = parts_.upper_bound(offset);
  if (after == parts_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  if (offset - begin > bytes.size() || out.size() > bytes.size() - (offset - begin)) return false;
  std::memcpy(out.data(), bytes.data() + (offset - begin), out.size());
  return true;
}

namespace {

void pack_texts(Packer& out, const std::vector<std::string>& texts) {
  out.number(texts.size());
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> unpack_texts(Unpacker& in) {
  std::vector<std::string> texts;
  for (std::uint64_t left = in.number(); left != 0; --left) texts.push_back(in.text());
  return texts;
}

void pack_file(Packer& out, const FileRecord& file) {
  out.bytes(file.failure);
  out.text(file.name);
  out.text(file.identity);
  out.number(file.location ? 1 : 0);
  out.text(file.location.value_or(""));
  out.number(file.size_bytes);
  out.number(file.bytes_per_round_trip);
  out.number(file.bytes.parts().size());
  for (const auto& [offset, bytes] : file.bytes.parts()) {
    out.number(offset);
    out.bytes(bytes);
  }
}

FileRecord unpack_file(Unpacker& in) {
  FileRecord file;
  const auto failure = in.bytes();
  file.failure.assign(failure.begin(), failure.end());
  file.name = in.text();
  file.identity = in.text();
  const bool has_location = in.number() != 0;
  if (std::string location = in.text(); has_location) file.location = std::move(location);
  file.size_bytes = in.number();
  file.bytes_per_round_trip = in.number();
  for (std::uint64_t left = in.number(); left != 0; --left) {
    const std::uint64_t offset = in.number();
    file.bytes.add(offset, in.bytes());
  }
  return file;
}

}  // namespace

std::vector<std::byte> OpeningRecord::packed() const {
  const std::lock_guard lock(mutex_);
  Packer out;
  out.number(files_.size());
  for (const auto& [name, file] : files_) {
    out.text(name);
    pack_file(out, file);
  }
  out.number(answers_.size());
  for (const auto& [question, answer] : answers_) {
    out.number(static_cast<std::uint64_t>(question.first));
    out.text(question.second);
    out.number(answer ? 1 : 0);
  }
  out.number(lists_.size());
  for (const auto& [name, list] : lists_) {
    out.text(name);
    out.number(list ? 1 : 0);
    pack_texts(out, list.value_or(std::vector<std::string>()));
  }
  out.number(notes_.size());
  for (const auto& [name, notes] : notes_) {
    out.text(name);
    pack_texts(out, notes);
  }
  return out.take();
}

OpeningRecord::OpeningRecord(std::span<const std::byte> packed) : is_closed_(true) {
  Unpacker in(packed);
  for (std::uint64_t left = in.number(); left != 0; --left) {
    std::string name = in.text();
    files_.emplace(std::move(name), unpack_file(in));
  }
  for (std::uint64_t left = in.number(); left != 0; --left) {
    const auto question = static_cast<Question>(in.number());
    std::string name = in.text();
    answers_[{question, std::move(name)}] = in.number() != 0;
  }
  for (std::uint64_t left = in.number(); left != 0; --left) {
    std::string name = in.text();
    const bool is_list = in.number() != 0;
    auto names = unpack_texts(in);
    lists_.emplace(std::move(name), is_list ? std::optional(std::move(names)) : std::nullopt);
  }
  for (std::uint64_t left = in.number(); left != 0; --left) {
    std::string name = in.text();
    notes_.emplace(std::move(name), unpack_texts(in));
  }
}

void OpeningRecord::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void OpeningRecord::forget_bytes() {
  const std::lock_guard lock(mutex_);
  for (auto& [name, file] : files_) file.bytes = {};
}

void OpeningRecord::add_file(const std::string& name, FileRecord file) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) files_.emplace(name, std::move(file));
}

void OpeningRecord::add_bytes(const std::string& name, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) files_.at(name).bytes.add(offset, bytes);
}

void OpeningRecord::add_answer(Question question, const std::string& name, bool answer) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) answers_.insert_or_assign({question, name}, answer);
}

void OpeningRecord::add_list(const std::string& name, const std::optional<std::vector<std::string>>& names) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) lists_.insert_or_assign(name, names);
}

void OpeningRecord::add_notes(const std::string& name, const std::vector<std::string>& notes) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) notes_.insert_or_assign(name, notes);
}

const FileRecord* OpeningRecord::file(const std::string& name) const {
  const auto found = files_.find(name);
  return found == files_.end() ? nullptr : &found->second;
}

std::optional<bool> OpeningRecord::answer(Question question, const std::string& name) const {
  const auto found = answers_.find({question, name});
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

const std::optional<std::vector<std::string>>* OpeningRecord::list(const std::string& name) const {
  const auto found = lists_.find(name);
  return found == lists_.end() ? nullptr : &found->second;
}

const std::vector<std::string>* OpeningRecord::notes(const std::string& name) const {
  const auto found = notes_.find(name);
  return found == notes_.end() ? nullptr : &found->second;
}

}  // namespace ballast::mpi
