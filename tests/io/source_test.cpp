#include <ballast/source.hpp>

#include "io/section.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>

#include "builders/temp_dir.hpp"
#include "support/counting_source.hpp"
#include "support/expect_error.hpp"
#include "support/root_rights.hpp"

namespace ballast::io {
namespace {

using test::CountingSource;
using test::TempDir;

const auto kPageBytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Bytes that differ from their neighbours in every page, and are never 0, which is what a shrunk page reads as.
std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(1 + (i * 7 + i / 251) % 255);
  return text;
}

std::string read(const Source& source, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  source.read(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void shrink(const std::string& path, std::size_t size) {
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
}

TEST(FileSource, ReadsAnyRangeHoweverLarge) {
  const TempDir dir;
  const std::string content = pattern(1'000'003);
  const auto file = file_source(dir.write("f", content));
  EXPECT_EQ(file->size_bytes(), content.size());
  EXPECT_EQ(file->location(5)->offset, 5u);
  EXPECT_EQ(file->name(), dir / "f");
  for (const std::size_t offset : {0u, 1u, 4095u, 4096u, 70'001u})
    for (const std::size_t size : {0u, 1u, 8u, 4096u, 65'536u, 900'000u})
      EXPECT_EQ(read(*file, offset, size), content.substr(offset, size)) << size << " bytes at " << offset;
  EXPECT_EQ(read(*file, 3, 1'000'000), content.substr(3)) << "to the last byte";
  EXPECT_EQ(as_text(file->mapped()), content);
}

TEST(FileSource, SaysWhereAFileEndsEarly) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", "12345678"));
  EXPECT_ERROR(read(*file, 4, 5), Errc::malformed,
               "f: ends early: 5 bytes are needed here, but it ends at byte 8 (byte 4)");
  EXPECT_ERROR(read(*file, UINT64_MAX, 2), Errc::malformed, "ends early");
  EXPECT_ERROR(file->visit(8, 1, [](auto) {}), Errc::malformed, "ends early");
}

TEST(FileSource, HasNothingInPlaceForAnEmptyFile) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", ""));
  EXPECT_EQ(file->size_bytes(), 0u);
  EXPECT_TRUE(file->mapped().empty());
  EXPECT_EQ(read(*file, 0, 0), "");
  bool was_called = false;
  EXPECT_TRUE(file->visit(0, 0, [&](auto bytes) { was_called = bytes.empty(); }));
  EXPECT_TRUE(was_called);
}

TEST(FileSource, ShowsAnEmptyRangeAnywhere) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", "12345"));
  for (const std::uint64_t offset : {0u, 3u, 5u}) {
    bool was_called = false;
    EXPECT_TRUE(file->visit(offset, 0, [&](auto bytes) { was_called = bytes.empty(); }));
    EXPECT_TRUE(was_called);
  }
}

TEST(FileSource, ReadsTheFileThatWasOpenedEvenWhenAnotherTakesItsName) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", "old"));
  dir.write("g", "new and longer");
  std::filesystem::rename(dir / "g", dir / "f");
  EXPECT_EQ(read(*file, 0, 3), "old");
  EXPECT_NO_THROW(file->check_unchanged());
}

TEST(FileSource, IsReadByManyThreadsAtOnce) {
  const TempDir dir;
  const std::string content = pattern(1 << 20);
  const auto file = file_source(dir.write("f", content));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t offset = (i * 4001 + t * 77) % 900'000, size = i % 2 == 0 ? 100 : 90'000;
        ASSERT_EQ(read(*file, offset, size), content.substr(offset, size));
        ASSERT_TRUE(
            file->visit(offset, size, [&](auto bytes) { ASSERT_EQ(as_text(bytes), content.substr(offset, size)); }));
        file->release(offset, size);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(FileSource, CanBeReadAgainAfterARelease) {
  const TempDir dir;
  const std::string content = pattern(kPageBytes * 4 + 5);
  const auto file = file_source(dir.write("f", content));
  EXPECT_EQ(as_text(file->mapped()), content);
  file->release(0, content.size());
  file->release(1, kPageBytes);
  file->release(0, content.size() + 1);  // not a range of the file: nothing happens
  EXPECT_EQ(as_text(file->mapped()), content);
}

TEST(OpenFile, RefusesWhatIsNotAFileWithoutWaitingForIt) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  (dir / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::filesystem::create_symlink(dir / "fifo", dir / "link");
  std::filesystem::create_symlink(dir / "loop", dir / "loop");

  struct Case {
    std::string path;
    Errc code;
    std::string text;
  };
  const Case cases[] = {
      {dir.path(), Errc::invalid_argument, ": is a directory, not a file"},
      {dir / "fifo", Errc::invalid_argument, "fifo: is a named pipe, not a file"},
      {dir / "link", Errc::invalid_argument, "link: is a named pipe, not a file"},
      {dir / "socket", Errc::invalid_argument, "socket: is a socket, not a file"},
      {"/dev/zero", Errc::invalid_argument, "/dev/zero: is a character device, not a file"},
      {dir / "loop", Errc::io, "loop: cannot be opened: too many levels of symbolic links"},
      {dir / "missing", Errc::not_found, "missing: cannot be opened: no such file or directory"},
      {dir / "fifo/x", Errc::not_found, "x: cannot be opened: not a directory"},
      {"", Errc::not_found, "cannot be opened"},
  };
  for (const Case& c : cases) EXPECT_ERROR(file_source(c.path), c.code, c.text);
  close(listener);
}

TEST(OpenFile, SaysThatPermissionIsMissing) {
  const TempDir dir;
  const std::string path = dir.write("f", "secret");
  chmod(path.c_str(), 0);
  const test::WithoutRootRights as_everybody;
  EXPECT_ERROR(file_source(path), Errc::io, "cannot be opened: permission denied");
}

TEST(OpenFile, HintsAtTheNumberOfOpenFiles) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer itself needs descriptors while it looks at the exception";
#endif
  const TempDir dir;
  const std::string path = dir.write("f", "x");
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const auto error = test::error_of([&] { file_source(path); });
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Errc::io);
  EXPECT_NE(error->hint().text().find("ulimit -n"), std::string::npos);
}

TEST(FileSource, NoticesThatTheFileWasChanged) {
  const TempDir dir;
  const std::string path = dir.write("f", "12345");
  const auto file = file_source(path);
  EXPECT_NO_THROW(file->check_unchanged());

  timespec times[2] = {};  // a time long ago, because the clock of a file system may tick slowly
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_ERROR(file->check_unchanged(), Errc::changed, "f: the file was changed while it was being read");
}

struct Range {
  std::size_t offset, size;
};

std::size_t count_zeros(const Source& source, const Range& range) {
  std::size_t zeros = 0;
  source.visit(range.offset, range.size,
               [&](auto bytes) { zeros = static_cast<std::size_t>(std::ranges::count(bytes, std::byte{0})); });
  return zeros;
}

// Reads a range in every way, out of a file that was cut after it had been mapped.
void read_from_cut_file(const std::string& content, const Range& range, std::size_t cut) {
  SCOPED_TRACE(testing::Message() << range.size << " bytes at " << range.offset << " of a file cut at " << cut);
  const TempDir dir;
  const auto file = file_source(dir.write("f", content));
  ASSERT_FALSE(file->mapped().empty());
  shrink(dir / "f", cut);

  const auto read_error = test::error_of(
      [&] { EXPECT_EQ(read(*file, range.offset, range.size), content.substr(range.offset, range.size)); });
  const auto visit_error = test::error_of([&] { EXPECT_EQ(count_zeros(*file, range), 0u); });

  const bool is_gone = cut < range.offset + range.size;
  const std::string told =
      "f: the file shrank from " + std::to_string(content.size()) + " to " + std::to_string(cut) + " bytes";
  EXPECT_EQ(read_error.has_value(), is_gone);
  // A visit may also report that the page after its range is gone.
  EXPECT_TRUE(visit_error.has_value() || !is_gone);
  for (const auto& error : {read_error, visit_error}) EXPECT_TRUE(!error || test::is_error(error, Errc::changed, told));
}

TEST(FileSource, TellsThatAFileShrankAndNeverGivesZeros) {
  const std::size_t size = 64 * kPageBytes + 100;
  const std::string content = pattern(size);
  const Range ranges[] = {
      {0, size}, {10, 20 * kPageBytes}, {0, 16 * kPageBytes}, {60 * kPageBytes, 4 * kPageBytes + 100},
      {3, 100},  {kPageBytes - 10, 10}};
  for (const Range& range : ranges)
    for (const std::size_t cut : {std::size_t{0}, kPageBytes / 2, 16 * kPageBytes - 1, 16 * kPageBytes,
                                  20 * kPageBytes + 9, 64 * kPageBytes, size - 1})
      read_from_cut_file(content, range, cut);
}

TEST(FileSource, SurvivesShrinkingWhileManyThreadsLook) {
  const std::size_t size = 256 * kPageBytes;
  for (int round = 0; round < 10; ++round) {
    const TempDir dir;
    const auto file = file_source(dir.write("f", pattern(size)));
    std::atomic<int> looking = 0, told = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const std::size_t length =
            t < 2 ? size : 101 * kPageBytes;  // to the end of the file, or of its last page after the cut
        const auto look_for_ever = [&] {
          ++looking;
          for (;;) {
            if (t % 2 == 0) {
              ASSERT_EQ(read(*file, 0, length).find('\0'), std::string::npos);
            }
            // A look that saw zeros must not return as if nothing was wrong.
            ASSERT_EQ(count_zeros(*file, {0, length}), 0u);
          }
        };
        EXPECT_ERROR(look_for_ever(), Errc::changed, "shrank");
        ++told;
      });
    while (looking < 4) std::this_thread::yield();
    shrink(dir / "f", 100 * kPageBytes + 17);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(told, 4);
  }
}

TEST(FileSource, LetsExceptionsOfALookThrough) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", pattern(10)));
  EXPECT_ERROR(file->visit(0, 10, [](auto) { throw Error(Errc::cancelled, "stop"); }), Errc::cancelled, "stop");
  EXPECT_TRUE(file->visit(0, 10, [](auto) {}));
}

TEST(Section, BehavesLikeAFileOfItsOwn) {
  const TempDir dir;
  const auto whole = file_source(dir.write("f", "0123456789"));
  const auto part = section(whole, 3, 4, "f!/part");
  EXPECT_EQ(part->size_bytes(), 4u);
  EXPECT_EQ(part->name(), "f!/part");
  std::array<std::byte, 2> two;
  part->read(2, two);
  EXPECT_EQ(two[0], std::byte{'5'});
  EXPECT_EQ(part->mapped().size(), 4u);
  EXPECT_EQ(part->mapped()[0], std::byte{'3'});
  EXPECT_EQ(part->location(1)->offset, 4u);
  EXPECT_ERROR(part->read(3, two), Errc::malformed, "ends early");
  EXPECT_ERROR(section(whole, 8, 3, "x"), Errc::malformed, "ends early");
}

TEST(Section, PassesOnWhatIsAskedForAndWhatWillBe) {
  const auto whole = std::make_shared<CountingSource>(test::source_named("f", "0123456789"));
  const auto part = section(section(whole, 1, 8, "outer"), 2, 5, "inner");
  std::array<std::byte, 2> first, second;
  const ReadRange ranges[] = {{0, first}, {3, second}};
  part->read_many(ranges);
  EXPECT_EQ(as_text(first) + as_text(second), "3467");
  EXPECT_EQ(whole->batches, 1u);
  EXPECT_EQ(whole->reads, 0u);
  const ByteRange soon[] = {{1, 2}};
  part->prefetch(soon);
  EXPECT_EQ(whole->announced(), (std::vector<ByteRange>{{4, 2}}));
  EXPECT_EQ(behind_sections(part, 1).source, whole);
  EXPECT_EQ(behind_sections(part, 1).offset, 4u);
  const ReadRange outside[] = {{0, first}, {4, second}};
  EXPECT_ERROR(part->read_many(outside), Errc::malformed, "ends early");
}

TEST(WithBeginning, AsksForTheFirstBytesOnce) {
  const auto whole = std::make_shared<CountingSource>(test::source_named("f", "0123456789"));
  const auto source = with_beginning(whole, 4);
  EXPECT_EQ(source->name(), "f");
  EXPECT_EQ(source->size_bytes(), 10u);
  EXPECT_EQ(whole->requests(), 1u);
  EXPECT_EQ(read(*source, 1, 3), "123");
  EXPECT_EQ(whole->requests(), 1u);
  EXPECT_EQ(read(*source, 2, 7), "2345678");
  EXPECT_EQ(whole->requests(), 2u);
  EXPECT_EQ(whole->bytes, 4u + 5u) << "the rest, and nothing twice";
  std::array<std::byte, 2> first, second;
  const ReadRange ranges[] = {{1, first}, {3, second}};
  source->read_many(ranges);
  EXPECT_EQ(as_text(first) + as_text(second), "1234");
  EXPECT_EQ(whole->bytes, 4u + 5u + 1u);
  EXPECT_EQ(behind_sections(source, 2).source, whole);
}

TEST(WithBeginning, KeepsAllOfAShortFileAndNothingOfAnEmptyOne) {
  const auto small = std::make_shared<CountingSource>(test::source_named("f", "01"));
  EXPECT_EQ(read(*with_beginning(small, 100), 0, 2), "01");
  EXPECT_EQ(small->requests(), 1u);
  const auto empty = std::make_shared<CountingSource>(test::source_named("f", ""));
  EXPECT_EQ(with_beginning(empty, 100)->size_bytes(), 0u);
  EXPECT_EQ(empty->requests(), 0u);
}

TEST(Source, LiesInTheFileThatItIsNamedAfterUnlessItSaysOtherwise) {
  const CountingSource source(test::source_named("https://host/model", "0123"));
  EXPECT_EQ(source.location(3)->file, "https://host/model");
  EXPECT_EQ(source.location(3)->offset, 3u);
  EXPECT_EQ(source.location(3)->open_file, nullptr);
  EXPECT_EQ(source.identity(), "");
}

TEST(FileSource, HasAnotherIdentityThanAnotherFileOfTheSameName) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", "1234"));
  EXPECT_EQ(file->identity(), file_source(dir / "f")->identity());
  dir.write("g", "1234");
  std::filesystem::rename(dir / "g", dir / "f");
  EXPECT_NE(file->identity(), file_source(dir / "f")->identity());
}

TEST(FileSource, TakesAdviceAboutAnyRanges) {
  const TempDir dir;
  const auto file = file_source(dir.write("f", pattern(1 << 20)));
  const ByteRange ranges[] = {{0, 10}, {5000, 100'000}, {900'000, 1 << 20}, {7, 0}, {UINT64_MAX, 1}};
  EXPECT_NO_THROW(file->prefetch(ranges));
  EXPECT_EQ(read(*file, 5000, 100), pattern(1 << 20).substr(5000, 100));
}

TEST(LocalFiles, AreFoundByTheirPaths) {
  const TempDir dir;
  dir.write("b", "2");
  dir.write("a", "1");
  const Files& files = *local_files();
  auto names = files.list(dir / "").value();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(files.list(dir / "a"));
  EXPECT_FALSE(files.list(dir / "no"));
  EXPECT_TRUE(files.exists(dir / "a"));
  EXPECT_FALSE(files.exists(dir / "no"));
  EXPECT_FALSE(files.exists(dir / "")) << "a folder is not a file";
  EXPECT_EQ(read(*files.open(files.beside(dir / "a", "b")), 0, 1), "2");
  EXPECT_ERROR(files.open(dir / "no"), Errc::not_found, "no");
  EXPECT_EQ(files.inside("folder", "f"), "folder/f");
  EXPECT_EQ(files.inside("folder/", "f"), "folder/f");
  EXPECT_EQ(files.beside("f", "g"), "g");
}

TEST(LocalFiles, SayWhichLinksLeaveTheirFolder) {
  const TempDir dir, other;
  const std::string elsewhere = other.write("x", "1"), here = dir.write("y", "2");
  std::filesystem::create_symlink(elsewhere, dir / "far");
  std::filesystem::create_symlink(here, dir / "near");
  EXPECT_TRUE(local_files()->leaves_its_folder(dir / "far"));
  EXPECT_FALSE(local_files()->leaves_its_folder(dir / "near"));
  EXPECT_FALSE(local_files()->leaves_its_folder(here));
}

TEST(MemorySource, BehavesLikeAFile) {
  const std::string text = "12345";
  const auto bytes = std::as_bytes(std::span(text));
  const auto source = memory_source({bytes.begin(), bytes.end()});
  EXPECT_EQ(source->name(), "<memory>");
  EXPECT_FALSE(source->location(0));
  EXPECT_EQ(read(*source, 1, 3), "234");
  EXPECT_EQ(as_text(source->mapped()), text);
  EXPECT_TRUE(source->visit(4, 1, [](auto bytes) { EXPECT_EQ(as_text(bytes), "5"); }));
  EXPECT_ERROR(read(*source, 3, 3), Errc::malformed, "<memory>: ends early");
  EXPECT_EQ(read(*memory_source({}), 0, 0), "");
}

TEST(ReadTextFile, ReadsAWholeFileUpToTheLimit) {
  const TempDir dir;
  const std::string path = dir.write("index.json", "{}\n");
  EXPECT_EQ(read_text_file(path, 3)->view(), "{}\n");
  EXPECT_ERROR(read_text_file(path, 2), Errc::limit, "index.json: has 3 bytes, more than the 2 allowed");
  EXPECT_ERROR(read_text_file(dir / "no", 2), Errc::not_found, "no: cannot be opened");
}

}  // namespace
}  // namespace ballast::io
