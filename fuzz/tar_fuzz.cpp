// Tar archives: whatever the bytes are, they give plain files that lie inside the archive and do not overlap, or an
// Error.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "formats/archive/tar.hpp"

namespace {

using ballast::Errc;
using ballast::Error;
using namespace ballast::archive;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

void check_invariants(const Tar& tar) {
  const std::uint64_t size = tar.source->size_bytes();
  std::set<std::string> names;
  std::uint64_t end = 0;
  for (const TarMember& member : tar.members) {
    require(member.data_offset % 512 == 0 && member.data_offset >= end + 512, "members that overlap");
    require(ballast::is_inside(member.data_offset, member.bytes, size), "a member outside of the file");
    require(names.insert(member.name).second, "a name twice");
    require(!member.name.empty() && member.name.find('\0') == std::string::npos && !member.name.starts_with("./"),
            "an odd name");
    require(tar.find(member.name) == &member, "a name that does not lead to its member");
    require(member_source(tar, member)->size_bytes() == member.bytes, "a source of another size");
    end = member.data_offset + member.bytes;
  }
}

void read_and_check(const std::vector<std::byte>& bytes) {
  const auto source = ballast::memory_source(bytes);
  const bool looks = looks_like_tar(bytes);
  ballast::Limits limits;
  limits.max_archive_members = 1000;
  try {
    const Tar tar = read_tar(source, limits);
    require(looks || tar.members.empty(), "a tar that does not look like one");
    check_invariants(tar);
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
            "an odd kind of error", error.what());
    require(error.offset() && *error.offset() <= bytes.size(), "a byte outside of the file", error.what());
    require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read",
            error.what());
  }
}

// Gives every block that could be a header a right checksum, because a fuzzer does not find one.
void seal(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    const std::span block = std::span(bytes).subspan(at, 512);
    if (block[0] == std::byte{0}) continue;
    std::fill_n(block.begin() + 148, 8, std::byte{' '});
    unsigned sum = 0;
    for (const std::byte b : block) sum += std::to_integer<unsigned>(b);
    for (std::size_t i = 6; i-- > 0; sum /= 8) block[148 + i] = static_cast<std::byte>('0' + sum % 8);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  read_and_check(bytes);
  seal(bytes);
  read_and_check(bytes);
  return 0;
}
