#include "save/source_check.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "core/deal.hpp"
#include "core/progress_meter.hpp"
#include "core/read_counter.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "kernels/crc32.hpp"
#include "tensor/ancestors.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kCheckedPieceBytes = std::uint64_t{4} << 20;

struct Piece {
  const Storage* storage;
  ByteRange range;
};

std::uint32_t read_piece(const Piece& piece, std::vector<std::byte>& buffer, std::uint64_t buffer_bytes) {
  const auto [offset, size] = piece.range;
  std::uint32_t crc32 = 0;
  if (piece.storage->visit(offset, size, [&](auto bytes) { crc32 = kernels::crc32(0, bytes); })) return crc32;
  for (std::uint64_t done = 0; done < size;) {
    if (buffer.size() < buffer_bytes) buffer.resize(buffer_bytes);
    const auto out = std::span(buffer).first(std::min(buffer_bytes, size - done));
    piece.storage->read(offset + done, out);
    crc32 = kernels::crc32(crc32, out);
    done += out.size();
  }
  return crc32;
}

}  // namespace

SourceCheck::SourceCheck(const SavePlan& plan) {
  const Storage* last = nullptr;  // the tensors of a file often share one storage, which is then asked once
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      if (item.tensor.storage().get() == last) continue;
      last = item.tensor.storage().get();
      bool is_made_from_several = false;
      for_each_ancestor(item.tensor, [&](const Tensor& tensor, const Storage::Derivation& derivation) {
        add(item, tensor, is_made_from_several);
        is_made_from_several = is_made_from_several || derivation.from.size() > 1;
      });
    }
  }
}

void SourceCheck::add(const SavePlan::Item& item, const Tensor& tensor, bool is_one_of_several) {
  const Storage* storage = tensor.storage().get();
  const auto declared = storage == nullptr ? std::nullopt : storage->declared_crc32();
  if (declared && sources_.try_emplace(storage, Source{*declared, item.name, is_one_of_several}).second)
    order_.push_back(storage);
}

bool SourceCheck::wants(const SavePlan::Item& item) const {
  if (sources_.empty() || !item.tensor.is_contiguous() || item.tensor.offset() != 0) return false;
  const auto source = sources_.find(item.tensor.storage().get());
  return source != sources_.end() && item.tensor.nbytes() == source->first->size_bytes();
}

void SourceCheck::found(const SavePlan::Item& item, std::uint32_t crc32) {
  sources_.at(item.tensor.storage().get()).found = crc32;
}

void SourceCheck::read_the_rest(Team& team, ThreadPool& pool, std::uint64_t buffer_bytes, const Progress& progress) {
  std::vector<Piece> pieces;
  std::vector<std::uint64_t> sizes;
  std::uint64_t total = 0;
  for (const Storage* storage : order_) {
    if (sources_.at(storage).found) continue;
    const std::uint64_t size = storage->size_bytes();
    const std::uint64_t piece_bytes = storage->is_sequential() ? std::max<std::uint64_t>(size, 1) : kCheckedPieceBytes;
    for (const ByteRange& range : split_by_bytes(size, storage->granule(), piece_bytes)) {
      pieces.push_back({storage, range});
      sizes.push_back(range.size);
    }
    total += size;
  }

  const Deal deal(team, sizes);
  ProgressMeter meter(progress, "checking", total);
  std::vector<std::vector<std::byte>> buffers(pool.size());
  std::vector<std::uint32_t> crc32s(pieces.size());
  const ReadsOfMember reads(team);
  pool.run(deal.mine().size(), [&](std::size_t i, unsigned worker) {
    const std::size_t number = deal.mine()[i];
    const Piece& piece = pieces[number];
    crc32s[number] = read_piece(piece, buffers[worker], buffer_bytes);
    piece.storage->release(piece.range.offset, piece.range.size);
    meter.add(piece.range.size);
  });
  deal.share(std::span(crc32s));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto& found = sources_.at(pieces[i].storage).found;
    found = kernels::combine_crc32(found.value_or(0), crc32s[i], pieces[i].range.size);
  }
}

std::vector<Note> SourceCheck::conclude(bool strict) const {
  struct Wrong {
    std::string text;
    std::uint64_t others = 0;
  };
  std::vector<std::string> files;
  std::map<std::string, Wrong> wrong;
  for (const Storage* storage : order_) {
    const Source& source = sources_.at(storage);
    if (source.found.value_or(0) == source.declared) continue;
    const auto location = storage->location();
    const std::string whose = source.is_one_of_several ? "that tensor " + quote(source.tensor) + " is made from"
                                                       : "of tensor " + quote(source.tensor);
    const std::string text = fmt::format("the bytes {} have the checksum {:08x}, not {:08x} as the file says", whose,
                                         source.found.value_or(0), source.declared);
    if (strict) {
      Error error(Errc::mismatch, text);
      if (location) error.in(location->file).at_byte(location->offset);
      throw error.hint("it was damaged, or written without checksums; without " + mention(Remedy::strict) +
                       " this is a warning");
    }
    const auto [it, is_new] = wrong.try_emplace(location ? location->file : "", Wrong{text});
    is_new ? files.push_back(it->first) : void(++it->second.others);
  }

  std::vector<Note> notes;
  for (const std::string& file : files) {
    const Wrong& first = wrong.at(file);
    notes.push_back(
        {file, first.others == 0 ? first.text : fmt::format("{}; so it is with {} more", first.text, first.others)});
  }
  return notes;
}

std::vector<Note> checksum_notes(const StateDict& tensors, const SaveOptions& options) {
  SavePlan plan;
  plan.files.emplace_back();
  for (const auto& [name, tensor] : tensors) plan.files[0].items.push_back({std::string(name), tensor, 0});
  SourceCheck check(plan);
  ThreadPool pool(options.threads);
  check.read_the_rest(Team::alone(), pool, kCheckedPieceBytes, options.progress);
  return check.conclude(options.strict);
}

}  // namespace ballast
