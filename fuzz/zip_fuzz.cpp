// Zip archives: whatever the bytes are, they give members that lie inside the file and do not overlap, or an Error. If
// the strict reading gives an error, a lenient reading of the same bytes has a finding; otherwise it has the same
// members.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "formats/archive/zip.hpp"

namespace {

using ballast::Errc;
using ballast::Error;
using ballast::Limits;
using namespace ballast::archive;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

Limits small_limits() {
  Limits limits;
  limits.max_inflated_bytes = 1 << 18;
  limits.max_archive_members = 1000;
  return limits;
}

void check_complaint(const Error& error, std::uint64_t size) {
  require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
          "an odd kind of error", error.what());
  require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read", error.what());
  require(error.code() == Errc::limit || error.offset().has_value(), "an error without a byte", error.what());
  require(error.offset().value_or(0) <= size, "a byte outside of the file", error.what());
}

void check_apart(std::vector<ZipMember> members) {
  std::sort(members.begin(), members.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.header_offset < b.header_offset; });
  std::uint64_t end = 0;
  std::set<std::string> names;
  for (const ZipMember& member : members) {
    require(member.header_offset >= end, "members that overlap");
    require(member.data_offset >= member.header_offset + 30 + member.name.size(), "data inside of a header");
    require(names.insert(member.name).second, "a name twice");
    require(!member.name.empty() && member.name.find('\0') == std::string::npos, "an odd name");
    require(member.method == 0 || member.method == 8, "a method that nobody can unpack");
    require(!member.is_stored() || member.bytes == member.packed_bytes, "stored, but not as it is");
    end = member.data_offset + member.packed_bytes;
  }
}

std::vector<std::byte> read(const ballast::Storage& storage, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  storage.read(offset, bytes);
  return bytes;
}

// Reads the member from its beginning, and again in two halves, the second half first.
void read_in_two_ways(const Zip& zip, const ZipMember& member) {
  const auto storage = member_storage(zip, member);
  const std::uint64_t size = storage->size_bytes();
  require(size == member.bytes, "a storage of another size");
  if (size > small_limits().max_inflated_bytes) return;
  std::optional<std::vector<std::byte>> whole;
  try {
    whole = read(*storage, 0, size);
    auto second = read(*storage, size / 2, size - size / 2);
    auto first = read(*storage, 0, size / 2);
    first.insert(first.end(), second.begin(), second.end());
    require(first == *whole, "read twice, but not alike");
  } catch (const Error& error) {
    require(!whole, "an error only at the second time", error.what());
    require(!member.is_stored(), "a stored member that cannot be read", error.what());
    check_complaint(error, zip.source->size_bytes());
  }
}

void check_lenient(const Zip& zip) {
  const std::uint64_t size = zip.source->size_bytes();
  require(zip.findings.size() < 300, "more findings than anybody reads");
  for (const ZipFinding& finding : zip.findings)
    require(finding.offset <= size && !finding.what.empty(), "a finding of nothing", finding.what);
  std::uint64_t packed = 0;
  for (const ZipMember& member : zip.members) {
    require(ballast::is_inside(member.data_offset, member.packed_bytes, size), "a member outside of the file");
    packed += member.packed_bytes;
    if (member.method != 0 && member.method != 8) continue;
    require(member_source(zip, member, small_limits())->size_bytes() == member.bytes, "a source of another size");
  }
  require(packed <= 4 * size, "more work than the file is worth");
}

std::optional<Zip> read_or_complain(const ballast::SourcePtr& source, ZipReading reading, std::optional<Errc>& code) {
  try {
    return read_zip(source, small_limits(), reading);
  } catch (const Error& error) {
    check_complaint(error, source->size_bytes());
    code = error.code();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto source = ballast::memory_source({bytes, bytes + size});
  std::optional<Errc> strict_code, lenient_code;
  const auto strict = read_or_complain(source, ZipReading::strict, strict_code);
  const auto lenient = read_or_complain(source, ZipReading::lenient, lenient_code);

  require(lenient || lenient_code == Errc::limit, "a lenient reading that refuses");
  if (lenient) check_lenient(*lenient);
  if (!strict) {
    require(!lenient || !lenient->findings.empty(), "refused, but without a finding");
    return 0;
  }
  require(strict->findings.empty(), "a strict reading with findings");
  check_apart(strict->members);
  for (const ZipMember& member : strict->members) read_in_two_ways(*strict, member);
  if (lenient) {
    const bool are_alike = std::equal(strict->members.begin(), strict->members.end(), lenient->members.begin(),
                                      lenient->members.end(), [](const ZipMember& a, const ZipMember& b) {
                                        return a.name == b.name && a.data_offset == b.data_offset &&
                                               a.packed_bytes == b.packed_bytes && a.method == b.method;
                                      });
    require(are_alike, "read strictly and leniently, but not alike");
  }
  return 0;
}
