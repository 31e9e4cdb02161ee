#include "io/page_cache.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "io/posix.hpp"

namespace ballast::io {
namespace {

// Magic numbers from linux/magic.h, and from the sources of the file systems that are not in it.
constexpr std::array<std::uint32_t, 9> kNetworks = {
    0x6969,      // nfs
    0xFF534D42,  // cifs
    0xFE534D42,  // smb2
    0x01021997,  // 9p
    0x65735546,  // fuse
    0x00C36400,  // ceph
    0x0BD00BD0,  // lustre
    0x47504653,  // gpfs
    0x5346414F,  // afs
};
constexpr std::uint64_t kSamples = 32;

enum class Page { is_there, is_not, is_unknown };

// Does not use mincore, which says that all pages are there if we may not write to the file.
Page look_at(int descriptor, std::uint64_t offset) {
  std::byte byte;
  const iovec place = {&byte, 1};
  const ssize_t n = retry([&] { return preadv2(descriptor, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT); });
  if (n >= 0) return Page::is_there;
  return errno == EAGAIN ? Page::is_not : Page::is_unknown;
}

}  // namespace

bool is_cold(int descriptor, std::uint64_t offset, std::uint64_t size) {
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);  // without this, a look would fetch the pages around it
  std::uint64_t absent = 0;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const Page page = look_at(descriptor, offset + size / kSamples * i);
    if (page == Page::is_unknown) return false;
    absent += page == Page::is_not;
  }
  return absent > kSamples / 2;
}

bool is_absent(int descriptor, std::uint64_t offset) { return look_at(descriptor, offset) == Page::is_not; }

bool is_on_network(int descriptor) {
  struct statfs found = {};
  if (fstatfs(descriptor, &found) != 0) return false;
  return std::ranges::find(kNetworks, static_cast<std::uint32_t>(found.f_type)) != kNetworks.end();
}

}  // namespace ballast::io
