// The cost of opening an archive: few bytes of a large one, and time in proportion to the members, however they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>

#include "builders/temp_dir.hpp"
#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "support/counting_source.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"

namespace ballast::archive {
namespace {

using test::CountingSource;
using test::u16;
using test::u32;
using test::u64;

std::string local_header(const std::string& name, const std::string& extra, std::uint16_t flags, std::uint32_t size) {
  return "PK\x03\x04" + u16(20) + u16(flags) + u16(0) + u32(0) + u32(0) + u32(size) + u32(size) + u16(name.size()) +
         u16(extra.size()) + name + extra;
}

std::string central_header(const std::string& name, std::uint16_t flags, std::uint32_t size, std::uint64_t offset) {
  return "PK\x01\x02" + u16(20) + u16(20) + u16(flags) + u16(0) + u32(0) + u32(0) + u32(size) + u32(size) +
         u16(name.size()) + u32(0) + u16(0) + u16(0) + u32(0) + u32(offset) + name;
}

std::string end_records(std::uint64_t count, std::uint64_t directory_bytes, std::uint64_t directory_offset) {
  const std::uint64_t record_offset = directory_offset + directory_bytes;
  return "PK\x06\x06" + u64(44) + u32(0) + u64(0) + u64(count) + u64(count) + u64(directory_bytes) +
         u64(directory_offset) + "PK\x06\x07" + u32(0) + u64(record_offset) + u32(1) + "PK\x05\x06" + u32(0) +
         u16(std::min<std::uint64_t>(count, 0xFFFF)) + u16(std::min<std::uint64_t>(count, 0xFFFF)) +
         u32(directory_bytes) + u32(directory_offset) + u16(0);
}

// The promise about a 440 MB checkpoint of 1 066 tensors, on a file that is mostly a hole.
TEST(ZipGrowth, OpensALargeCheckpointByReadingLittle) {
  const test::TempDir folder;
  const std::string path = folder / "large.pt";
  std::string directory;
  std::uint64_t at = 0;
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](const std::string& bytes) {
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
    at += bytes.size();
  };
  for (int i = 0; i < 1066; ++i) {
    const std::uint32_t size = i % 2 ? 826'000 : 3072;
    const std::string name = "large/data/" + std::to_string(i);
    directory += central_header(name, 0x808, size, at);
    put(local_header(name, test::extra_record(0x4246, std::string((64 - (at + 34 + name.size()) % 64) % 64, 'Z')),
                     0x808, 0));
    at += size;
    put("PK\x07\x08" + u32(0) + u32(size) + u32(size));
  }
  const std::uint64_t directory_offset = at;
  put(directory);
  put(end_records(1066, directory.size(), directory_offset));
  file.close();

  const auto source = std::make_shared<CountingSource>(file_source(path));
  const Zip zip = read_zip(source, {});
  EXPECT_EQ(zip.members.size(), 1066u);
  EXPECT_GT(source->size_bytes(), 440'000'000u);
  EXPECT_LT(source->bytes, 1'000'000u);
  EXPECT_LE(source->reads, 3u);
  EXPECT_EQ(source->batches, 1u);
}

using Build = std::function<std::string(std::size_t count)>;

SourcePtr source_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source({bytes.begin(), bytes.end()});
}

double seconds_to_read(const std::string& text, ZipReading reading) {
  const auto source = source_of(text);
  double best = 1e9;
  for (int round = 0; round < 2; ++round) {
    const double start = test::cpu_seconds();
    static_cast<void>(test::error_of([&] { read_zip(source, {}, reading); }));
    best = std::min(best, test::cpu_seconds() - start);
  }
  return best;
}

// Measures the exponent k of time ~ members^k, from `count` members to sixteen times as many: 2 for a quadratic cost.
// A busy machine can spoil one try, but not every one.
void expect_nearly_linear(const Build& build, std::size_t count, ZipReading reading) {
  const std::string small = build(count), large = build(16 * count);
  double exponent = 9;
  for (int tries = 0; tries < 4 && exponent > 1.6; ++tries)
    exponent = std::min(exponent, std::log2(seconds_to_read(large, reading) / seconds_to_read(small, reading)) / 4);
  EXPECT_LE(exponent, 1.6);
}

// Entry i of the directory points to the local header of member `place(i)`.
std::string many_members(std::size_t count, const std::function<std::size_t(std::size_t)>& place) {
  const std::string body(20, 'x');
  const auto name = [](std::size_t i) { return "m" + std::to_string(1'000'000 + i); };
  const std::uint64_t each = local_header(name(0), "", 0, 20).size() + body.size();
  std::string text, directory;
  for (std::size_t i = 0; i < count; ++i) {
    text += local_header(name(i), "", 0, 20) + body;
    directory += central_header(name(place(i)), 0, 20, each * place(i));
  }
  const std::uint64_t offset = text.size();
  return text + directory + end_records(count, directory.size(), offset);
}

TEST(ZipGrowth, IsLinearInTheMembers) {
  expect_nearly_linear([](std::size_t n) { return many_members(n, [](std::size_t i) { return i; }); }, 4000,
                       ZipReading::strict);
}

TEST(ZipGrowth, IsLinearForMembersInTheWorstOrder) {
  expect_nearly_linear([](std::size_t n) { return many_members(n, [n](std::size_t i) { return n - 1 - i; }); }, 4000,
                       ZipReading::strict);
}

TEST(ZipGrowth, IsLinearForMembersThatAreOneAndTheSame) {
  expect_nearly_linear([](std::size_t n) { return many_members(n, [](std::size_t) { return 0; }); }, 2000,
                       ZipReading::lenient);
}

TEST(ZipGrowth, IsLinearForMembersThatNobodyLists) {
  expect_nearly_linear(
      [](std::size_t n) {
        const std::string whole = many_members(n, [](std::size_t i) { return i; });
        return whole.substr(0, whole.size() - 1);
      },
      2000, ZipReading::lenient);
}

// Each header seems to have data up to the end of the file, and a name that reaches over the next headers.
TEST(ZipGrowth, IsLinearForHeadersInsideOfEachOther) {
  expect_nearly_linear(
      [](std::size_t n) {
        std::string text;
        for (std::size_t i = 0; i < n; ++i)
          text += "PK\x03\x04" + u16(20) + u16(0) + u16(0) + u32(0) + u32(0) + u32(0xFFFFFFFE) + u32(0xFFFFFFFE) +
                  u16(1) + u16(0xFF00);
        return text;
      },
      4000, ZipReading::lenient);
}

TEST(ZipGrowth, ReadsAMillionMembers) {
  constexpr std::size_t kCount = 1'000'000;
  const Zip zip = read_zip(source_of(many_members(kCount, [](std::size_t i) { return i; })), {});
  EXPECT_EQ(zip.members.size(), kCount);
}

}  // namespace
}  // namespace ballast::archive
