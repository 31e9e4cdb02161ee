#include "formats/archive/header_window.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <ballast/error.hpp>

namespace ballast::archive {

void HeaderWindow::load(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead) {
  const std::uint64_t total = source_.size_bytes();
  if (!is_inside(offset, size, total)) {
    throw Error(Errc::malformed,
                fmt::format("ends early: {} bytes are needed here, but it ends at byte {}", size, total))
        .in(source_.name())
        .at_byte(offset);
  }
  bytes_.clear();  // if the read fails, nothing is held
  std::vector<std::byte> fresh(static_cast<std::size_t>(std::min(std::max(size, ahead), total - offset)));
  source_.read_at(offset, fresh);
  bytes_ = std::move(fresh);
  begin_ = offset;
}

}  // namespace ballast::archive
