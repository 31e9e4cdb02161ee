#include "formats/archive/header_window.hpp"

#include <algorithm>
#include <utility>

#include "core/checked.hpp"
#include "io/section.hpp"

namespace ballast::archive {

bool HeaderWindow::Piece::holds(std::uint64_t first, std::uint64_t size) const noexcept {
  return first >= offset && is_inside(first - offset, size, bytes.size());
}

std::span<const std::byte> HeaderWindow::Piece::at(std::uint64_t first, std::uint64_t size) const noexcept {
  return bytes.subspan(static_cast<std::size_t>(first - offset), static_cast<std::size_t>(size));
}

const HeaderWindow::Piece* HeaderWindow::find_loaded(std::uint64_t offset, std::uint64_t size) const noexcept {
  const auto next = std::ranges::upper_bound(loaded_, offset, {}, &Piece::offset);
  if (next == loaded_.begin() || !std::prev(next)->holds(offset, size)) return nullptr;
  return &*std::prev(next);
}

std::span<const std::byte> HeaderWindow::at(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead) {
  if (const Piece* loaded = find_loaded(offset, size)) return loaded->at(offset, size);
  if (piece_.holds(offset, size)) return piece_.at(offset, size);

  io::require_inside(source_, offset, size);
  piece_ = {};  // if the read fails, nothing is held
  bytes_.resize(static_cast<std::size_t>(std::min(std::max(size, ahead), source_.size_bytes() - offset)));
  source_.read(offset, bytes_);
  piece_ = {offset, bytes_};
  return piece_.at(offset, size);
}

void HeaderWindow::load(std::span<const ByteRange> ranges) {
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.size;
  loaded_.clear();
  loaded_bytes_.resize(static_cast<std::size_t>(total));

  std::vector<ReadRange> wanted;
  std::vector<Piece> pieces;
  auto rest = std::span(loaded_bytes_);
  for (const ByteRange& range : ranges) {
    wanted.push_back({range.offset, rest.first(static_cast<std::size_t>(range.size))});
    pieces.push_back({range.offset, wanted.back().out});
    rest = rest.subspan(static_cast<std::size_t>(range.size));
  }
  source_.read_many(wanted);
  loaded_ = std::move(pieces);
}

}  // namespace ballast::archive
