// Trust in conversion caches: which ones are believed, which checkpoints get none, and who can see and remove them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ballast/hash.hpp>

#include <filesystem>
#include <fstream>
#include <functional>

#include "builders/safetensors_file.hpp"
#include "cache/identity.hpp"
#include "cache/location.hpp"
#include "cache/seal.hpp"
#include "cache/user_folders.hpp"
#include "support/cache_test.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::is_from_cache;
using test::kAlways;
using test::kAutomatic;
using test::kIgnore;
using test::strided_file;
using test::TempDir;
using test::TorchZip;
namespace py = test::py;

mode_t mode_of(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

class CacheTrust : public test::CacheTest {};

TEST_F(CacheTrust, NoticesThatTheSourceChanged) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  struct stat before = {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);

  dir.write("model.pt", strided_file(7));  // in place: the same inode and size, and the same time
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_FALSE(is_from_cache(open(path)));
  EXPECT_EQ(test::values_of<float>(open(path).at("w"))[0], 7);

  EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));
  EXPECT_EQ(test::values_of<float>(open(path).at("w"))[0], 7);
  fs::remove(path);
  EXPECT_ERROR(open(path), Errc::not_found, "cannot be opened");
}

TEST_F(CacheTrust, NoticesThatItWasDamaged) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const std::string good = dir.read(std::string(".model.pt") + kEnding);
  struct stat made = {};
  ASSERT_EQ(stat(beside().c_str(), &made), 0);
  const auto put = [&](const std::string& bytes) {
    std::ofstream(beside(), std::ios::binary | std::ios::trunc) << bytes;
    const struct timespec times[2] = {made.st_atim, made.st_mtim};
    utimensat(AT_FDCWD, beside().c_str(), times, 0);  // as if a disk damaged the file: its time stays the same
  };
  for (std::size_t size = 0; size < good.size(); size += 5) {
    put(good.substr(0, size));
    ASSERT_FALSE(is_from_cache(open(path))) << size;
  }
  put(good + "x");
  EXPECT_FALSE(is_from_cache(open(path)));
  const std::size_t header = good.rfind('}') + 1;
  for (std::size_t i = 0; i < header; i += i < 16 ? 1 : 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    put(bad);
    // Some bytes may change without harm: spaces that pad the header, and digits of shapes that have a record of their
    // own.
    const Checkpoint opened = open(path);
    ASSERT_EQ(hash(opened).digest, hash(open(path, kIgnore)).digest) << i;
  }
  put(good);
  EXPECT_TRUE(is_from_cache(open(path)));

  std::ofstream(beside(), std::ios::binary | std::ios::trunc) << good;  // but a write changes the file's time
  EXPECT_FALSE(is_from_cache(open(path)));
  EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));
}

TEST_F(CacheTrust, HasTheTimeThatItWasGiven) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  struct stat made = {};
  ASSERT_EQ(stat(beside().c_str(), &made), 0);
  const auto why_not_at = [&](time_t seconds, long nanoseconds) {
    const struct timespec times[2] = {made.st_atim, {.tv_sec = seconds, .tv_nsec = nanoseconds}};
    EXPECT_EQ(utimensat(AT_FDCWD, beside().c_str(), times, 0), 0);
    return list_cache().at(0).why_not;
  };
  EXPECT_EQ(why_not_at(made.st_mtim.tv_sec, 0), "");
  EXPECT_EQ(why_not_at(made.st_mtim.tv_sec + 1, 0), "was changed after it was made, or never finished");
  EXPECT_EQ(why_not_at(made.st_mtim.tv_sec, 1), "was changed after it was made, or never finished");
}

TEST_F(CacheTrust, IsNotMadeOfAFileThatChangesMeanwhile) {
  const std::string path = dir.write("model.pt", strided_file());
  OpenOptions options = kAlways;
  options.progress = [&](const ProgressState&) {
    const struct timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    return utimensat(AT_FDCWD, path.c_str(), times, 0) == 0;
  };
  EXPECT_TRUE(test::has_note(open(path, options), "the file was changed while it was being read"));
  EXPECT_FALSE(fs::exists(beside()));
}

TEST_F(CacheTrust, IsNotBelievedWhereOthersCanWrite) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const auto change_mode = [](const std::string& of, mode_t mode) { ASSERT_EQ(chmod(of.c_str(), mode), 0); };
  for (const mode_t mode : {0664u, 0646u}) {
    change_mode(beside(), mode);
    EXPECT_FALSE(is_from_cache(open(path)));
  }
  change_mode(beside(), 0600);
  EXPECT_TRUE(is_from_cache(open(path)));
  for (const mode_t mode : {0770u, 0757u, 01777u}) {
    change_mode(dir.path(), mode);
    EXPECT_FALSE(is_from_cache(open(path)));
  }
  change_mode(dir.path(), 0755);
  EXPECT_TRUE(is_from_cache(open(path)));

  fs::rename(beside(), dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", beside());
  EXPECT_FALSE(is_from_cache(open(path)));
  EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));  // the link is replaced, and not followed
  EXPECT_FALSE(fs::is_symlink(beside()));
}

TEST_F(CacheTrust, BelongsToThisUserAndToNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  for (const auto& of : {beside(), dir.path()}) {
    ASSERT_EQ(chown(of.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(is_from_cache(open(path))) << of;
    ASSERT_EQ(chown(of.c_str(), 0, 0), 0);
    EXPECT_TRUE(is_from_cache(open(path))) << of;
  }
}

TEST_F(CacheTrust, IsAPlainFileOfThisUserThatNobodyElseCanWriteTo) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const auto expect_refusal = [&](const char* why) {
    EXPECT_ERROR(examine_cache(beside(), path), Errc::mismatch, why);
  };
  EXPECT_NO_THROW(examine_cache(beside(), path));
  for (const mode_t mode : {0664u, 0646u}) {
    ASSERT_EQ(chmod(beside().c_str(), mode), 0);
    expect_refusal("others can write to it");
  }
  ASSERT_EQ(chmod(beside().c_str(), 0600), 0);
  ASSERT_EQ(chmod(dir.path().c_str(), 0770), 0);
  expect_refusal("others can write to its folder");
  ASSERT_EQ(chmod(dir.path().c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(beside().c_str(), 12345, 0), 0);
    expect_refusal("belongs to another user");
    ASSERT_EQ(chown(beside().c_str(), 0, 0), 0);
  }
  EXPECT_ERROR(examine_cache(beside(), dir / "gone.pt"), Errc::mismatch, "the source is gone");
  EXPECT_ERROR(examine_cache(beside("gone.pt"), path), Errc::not_found, "cannot be examined");
  fs::rename(beside(), dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", beside());
  expect_refusal("is not a plain file");
}

TEST_F(CacheTrust, IsNotTakenFromAnotherUser) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const std::string own = getenv("XDG_STATE_HOME");
  setenv("XDG_STATE_HOME", (home / "another").c_str(), 1);
  EXPECT_FALSE(is_from_cache(open(path)));  // because this user has no key
  ASSERT_TRUE(is_from_cache(open(dir.write("other.pt", strided_file()), kAutomatic)));
  EXPECT_FALSE(is_from_cache(open(path)));  // because this user has another key
  setenv("XDG_STATE_HOME", own.c_str(), 1);
  EXPECT_TRUE(is_from_cache(open(path)));
  EXPECT_FALSE(is_from_cache(open(dir / "other.pt")));
}

// Somebody else packed this cache: everything about the files is right, but the seal cannot be.
TEST_F(CacheTrust, IsNotBelievedWithoutASealOrWithAForgedOne) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  struct stat made = {};
  ASSERT_EQ(stat(beside().c_str(), &made), 0);
  const auto replace = [&](const std::function<void(std::string&)>& change) {
    std::string bytes = dir.read(std::string(".model.pt") + kEnding);
    change(bytes);
    std::ofstream(beside(), std::ios::binary | std::ios::in) << bytes;
    const struct timespec times[2] = {made.st_atim, made.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, beside().c_str(), times, 0), 0);
  };
  UserSecret guess{};
  seal_cache(beside(), guess);
  replace([](std::string&) {});
  EXPECT_FALSE(is_from_cache(open(path)));
  replace([](std::string& bytes) { bytes[bytes.find(kSealKey)] = 'B'; });
  EXPECT_FALSE(is_from_cache(open(path)));
  replace([](std::string& bytes) { bytes[bytes.find("Ballast.cache.seal")] = 'b'; });
  seal_cache(beside(), *read_user_secret());
  replace([](std::string&) {});
  EXPECT_TRUE(is_from_cache(open(path)));
}

TEST_F(CacheTrust, IsMadeOfExactlyTheFilesThatTheTargetNames) {
  const std::string path = dir.write("model.pt", strided_file());
  const auto key_with = [&](const std::function<void(CacheKey&)>& change) {
    CacheKey key = key_of(path, {});
    change(key);
    return key;
  };
  check_key(key_with([](CacheKey&) {}), path, {});
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { key.version += "x"; }), path, {}), Errc::mismatch,
               "was made by another version of Ballast");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { ++key.options_digest; }), path, {}), Errc::mismatch,
               "was made by an open with other options");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { ++key.sources[0].ends_digest; }), path, {}), Errc::mismatch,
               "the source has changed");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { ++key.sources[0].file.size_bytes; }), path, {}), Errc::mismatch,
               "the source has changed");
  EXPECT_ERROR(check_key(key_with([](CacheKey&) {}), dir / "gone.pt", {}), Errc::mismatch, "the source is gone");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { key.sources.clear(); }), path, {}), Errc::mismatch,
               "the checkpoint consists of other files now");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { key.sources.push_back(key.sources[0]); }), path, {}),
               Errc::mismatch, "the checkpoint consists of other files now");
  EXPECT_ERROR(check_key(key_with([](CacheKey& key) { key.sources[0].name = "another.pt"; }), path, {}), Errc::mismatch,
               "the checkpoint consists of other files now");

  dir.write("a-00001-of-00002.bin", strided_file());
  dir.write("a-00002-of-00002.bin", strided_file());
  const std::string index = dir.write("a.bin.index.json", R"({"weight_map":{"w":"a-00001-of-00002.bin"}})");
  EXPECT_EQ(files_of_target(index, {}), (std::vector<std::string>{dir / "a-00001-of-00002.bin", index}));
  const std::string of_folder = dir.write("b.bin.index.json", R"({"weight_map":{"w":"folder"}})");
  fs::create_directory(dir / "folder");
  EXPECT_ERROR(key_of(of_folder, {}), Errc::unsupported, "is no file");
  const CacheKey of_one = key_of(index, {});
  dir.write("a.bin.index.json", R"({"weight_map":{"w":"a-00001-of-00002.bin","v":"a-00002-of-00002.bin"}})");
  EXPECT_ERROR(check_key(of_one, index, {}), Errc::mismatch, "the checkpoint consists of other files now");
}

TEST_F(CacheTrust, IsNotBelievedInACopiedFolderOrARestoredBackup) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  const auto copy_with_times = [](const fs::path& from, const fs::path& to) {
    const std::string command = "cp -a '" + from.string() + "' '" + to.string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
  };
  const TempDir elsewhere;
  ASSERT_EQ(chmod(elsewhere.path().c_str(), 0700), 0);
  copy_with_times(dir.path() + "/.", elsewhere.path());
  ASSERT_TRUE(fs::exists(elsewhere / (std::string(".model.pt") + kEnding)));
  EXPECT_FALSE(is_from_cache(open(elsewhere / "model.pt")));

  fs::remove(path);
  copy_with_times(elsewhere / "model.pt", path);
  EXPECT_FALSE(is_from_cache(open(path)));
}

// The seal was made long before the file was last changed, whatever its time of modification says.
TEST_F(CacheTrust, IsNotBelievedAfterItsBytesWereReplaced) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  check_seal(beside(), *read_user_secret());
  constexpr std::int64_t kAnHour = 3600;
  for (const std::int64_t seconds : {-kAnHour, kAnHour}) {
    seal_cache(beside(), *read_user_secret(), seconds);
    EXPECT_ERROR(check_seal(beside(), *read_user_secret()), Errc::mismatch, "was changed, copied or restored");
    EXPECT_FALSE(is_from_cache(open(path)));
  }
}

// Seals it so that this many seconds have passed since, to the second.
void seal_exactly(const std::string& path, std::int64_t passed) {
  struct stat before = {}, after = {};
  do {
    ASSERT_EQ(stat(path.c_str(), &before), 0);
    seal_cache(path, *read_user_secret(), -passed);
    ASSERT_EQ(stat(path.c_str(), &after), 0);
  } while (before.st_ctim.tv_sec != after.st_ctim.tv_sec);
}

TEST_F(CacheTrust, IsSealedInAMinute) {
  open(dir.write("model.pt", strided_file()), kAutomatic);
  for (const std::int64_t passed : {0, 60}) {
    seal_exactly(beside(), passed);
    EXPECT_NO_THROW(check_seal(beside(), *read_user_secret())) << passed;
  }
  for (const std::int64_t passed : {-1, 61}) {
    seal_exactly(beside(), passed);
    EXPECT_ERROR(check_seal(beside(), *read_user_secret()), Errc::mismatch, "was changed, copied or restored");
  }
}

TEST_F(CacheTrust, HasASealInItsHeader) {
  const UserSecret secret{};
  const auto check = [&](std::uint64_t length, const std::string& header) {
    check_seal(dir.write("cache", test::u64(length) + header), secret);
  };
  const std::string key = '"' + std::string(kSealKey) + "\":\"";
  const std::string whole = key + blank_seal(), cut = whole.substr(0, whole.size() - 1);
  EXPECT_ERROR(check(whole.size(), whole), Errc::mismatch, "was not made by this user");
  EXPECT_ERROR(check(cut.size(), cut), Errc::mismatch, "is not a conversion cache with a seal");
  EXPECT_ERROR(check(2, "{}"), Errc::mismatch, "is not a conversion cache with a seal");
  EXPECT_ERROR(check(500, std::string(500, ' ')), Errc::mismatch, "is not a conversion cache with a seal");
  EXPECT_ERROR(check(whole.size() + 1, whole), Errc::mismatch, "the cache is not complete");
  EXPECT_ERROR(check(Limits{}.max_header_bytes, whole), Errc::mismatch, "the cache is not complete");
  EXPECT_ERROR(check(Limits{}.max_header_bytes + 1, whole), Errc::mismatch, "is not a conversion cache");
  EXPECT_ERROR(check_seal(dir.write("cache", "1234567"), secret), Errc::mismatch, "the cache is not complete");
  EXPECT_ERROR(check_seal(dir / "gone", secret), Errc::not_found, "cannot be opened");
  EXPECT_ERROR(seal_cache(dir / "gone", secret), Errc::not_found, "cannot be opened");
}

TEST_F(CacheTrust, HasARecordUnderItsSeal) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  dir.write(fs::path(beside()).filename().string(),
            test::SafetensorsFile().tensor("w", "F32", {1}).metadata({{kSealKey, blank_seal()}}).text());
  seal_cache(beside(), *read_user_secret());
  ASSERT_EQ(list_cache().size(), 1u);
  EXPECT_EQ(list_cache()[0].why_not, "is not a conversion cache");
  EXPECT_FALSE(is_from_cache(open(path)));
}

TEST_F(CacheTrust, NeedsAKeyThatNobodyElseCanRead) {
  const std::string path = dir.write("model.pt", strided_file());
  const fs::path folder = home / "state/ballast", key = folder / "cache.key";
  EXPECT_FALSE(is_from_cache(open(path)));
  EXPECT_FALSE(fs::exists(folder)) << "only making a cache makes a key";
  open(path, kAutomatic);
  EXPECT_EQ(mode_of(key), 0600u);
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(fs::file_size(key), 32u);

  const auto expect_none = [&](const char* why) {
    EXPECT_FALSE(is_from_cache(open(path))) << why;
    const Checkpoint opened = open(path, kAutomatic);
    EXPECT_FALSE(is_from_cache(opened)) << why;
    EXPECT_TRUE(test::has_note(opened, why));
  };
  for (const mode_t mode : {0640u, 0604u, 0620u}) {
    ASSERT_EQ(chmod(key.c_str(), mode), 0);
    expect_none("others can read or write it");
  }
  ASSERT_EQ(chmod(key.c_str(), 0600), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0770), 0);
  expect_none("others can write to its folder");
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  EXPECT_TRUE(is_from_cache(open(path)));

  if (geteuid() == 0) {
    ASSERT_EQ(chown(key.c_str(), 12345, 0), 0);
    expect_none("it is not a file of this user");
    ASSERT_EQ(chown(key.c_str(), 0, 0), 0);
  }
  for (const std::size_t size : {0u, 31u, 33u}) {
    fs::resize_file(key, size);
    expect_none("it has another size");
  }
  fs::remove(key);
  fs::create_directory(key);
  ASSERT_EQ(chmod(key.c_str(), 0700), 0);
  expect_none("it is not a file of this user");
  fs::remove(key);
  fs::create_symlink("/dev/null", key);
  expect_none("cannot be opened");
  fs::remove_all(folder);
  std::ofstream(folder) << "not a folder";
  expect_none("no conversion cache was made");
}

// The archive holds a checkpoint and a cache of it, with other numbers, that somebody else made.
TEST_F(CacheTrust, IsNotPlantedByAnArchive) {
  const std::string archive = test::vector_path("found/cache_poison.tar");
  ASSERT_EQ(std::system(("tar -C '" + dir.path() + "' -xf '" + archive + "'").c_str()), 0);
  std::size_t checkpoints = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    if (entry.path().filename().string().starts_with('.') || !entry.is_regular_file()) continue;
    ++checkpoints;
    EXPECT_FALSE(is_from_cache(open(entry.path().string()))) << entry.path();
  }
  EXPECT_GT(checkpoints, 0u);
}

TEST_F(CacheTrust, ShowsNothingThatTheSourceDoesNotShow) {
  for (const auto& [source, cache] : {std::pair<mode_t, mode_t>{0600, 0600}, {0640, 0600}, {0644, 0644}}) {
    const std::string path = dir.write("model.pt", strided_file());
    ASSERT_EQ(chmod(path.c_str(), source), 0);
    open(path, kAutomatic);
    EXPECT_EQ(mode_of(beside()), cache);
  }
}

TEST_F(CacheTrust, LiesUnderTheUsersCacheWhereOthersCanWrite) {
  const std::string path = dir.write("model.pt", strided_file());
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  EXPECT_TRUE(is_from_cache(open(path, kAutomatic)));
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
  EXPECT_EQ(mode_of(cache_folder()), 0700u);
  EXPECT_EQ(fs::path(cache_path(path)).parent_path(), cache_folder());
  EXPECT_TRUE(is_from_cache(open(path)));

  ASSERT_EQ(chmod(cache_folder().c_str(), 0777), 0);
  EXPECT_FALSE(is_from_cache(open(path)));
  const Checkpoint opened = open(path, kAutomatic);
  EXPECT_FALSE(is_from_cache(opened));
  EXPECT_TRUE(test::has_note(opened, "no conversion cache was made: there is no folder for it"));
  EXPECT_EQ(opened.notes.back().kind, Note::Kind::remark);
}

TEST_F(CacheTrust, NeedsNoHome) {
  unsetenv("XDG_CACHE_HOME");
  const std::string before = getenv("HOME") ? getenv("HOME") : "";
  unsetenv("HOME");
  EXPECT_EQ(cache_folder(), "");
  EXPECT_TRUE(is_from_cache(open(dir.write("model.pt", strided_file()), kAutomatic)));
  EXPECT_TRUE(list_cache().empty());
  unsetenv("XDG_STATE_HOME");
  const fs::path here = fs::current_path();
  fs::current_path(dir.path());
  dir.write("cache.key", std::string(32, 'k'));
  EXPECT_EQ(read_user_secret(), std::nullopt) << "a key beside the program is nobody's";
  fs::current_path(here);
  const Checkpoint without = open(dir.write("other.pt", strided_file()), kAutomatic);
  EXPECT_FALSE(is_from_cache(without));
  EXPECT_TRUE(test::has_note(without, "there is no folder for this user's key"));
  setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(cache_folder(), "/somewhere/.cache/ballast");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder(), "/somewhere/.cache/ballast");
  setenv("HOME", before.c_str(), 1);
}

TEST_F(CacheTrust, HidesNothingDangerous) {
  const std::string path =
      dir.write("model.pt", TorchZip()
                                .object(py::dict({{"w", py::tensor(py::storage("Float", "0", 4), 0, {2, 2}, {1, 2})},
                                                  {"x", py::call("os", "system", {py::text("true")})}}))
                                .record("0", test::raw<float>({1, 2, 3, 4}))
                                .text());
  const Checkpoint opened = open(path, kAlways);
  EXPECT_FALSE(opened.dangerous.empty());
  EXPECT_TRUE(test::has_note(opened, "names \"os.system\", which runs programs or shell commands"));
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
}

TEST_F(CacheTrust, HidesNoWrongChecksum) {
  std::string text = strided_file();
  const std::string data = test::raw<float>({1, 2, 3, 4});
  text[text.find(data)] ^= 1;
  const std::string path = dir.write("model.pt", text);
  EXPECT_TRUE(test::has_note(open(path, kAlways), "no conversion cache was made"));
  EXPECT_EQ(dir.names(), (std::set<std::string>{"model.pt"}));
}

TEST_F(CacheTrust, IsForTheOptionsThatItWasMadeWith) {
  const std::string path = dir.write("model.pt", strided_file());
  open(path, kAutomatic);
  EXPECT_FALSE(is_from_cache(open(path, {.safety = Safety::strict})));
  EXPECT_FALSE(is_from_cache(open(path, {.lenient = true})));
  Limits limits;
  limits.max_pickle_nodes = 1;
  EXPECT_ERROR(open(path, {.limits = limits}), Errc::limit, "");
  EXPECT_TRUE(is_from_cache(open(path, {.threads = 1})));
}

TEST_F(CacheTrust, IsRemovedIfItCanBe) {
  EXPECT_FALSE(remove_cache(beside()));
  EXPECT_FALSE(remove_cache(dir.write("file", "x") + "/cache"));
  fs::create_directory(beside());
  EXPECT_ERROR(remove_cache(beside()), Errc::io, "cannot be removed");
}

TEST_F(CacheTrust, LiesInAFolder) {
  EXPECT_TRUE(is_private_folder(dir.path()));
  const std::string file = dir.write("file", "x");
  ASSERT_EQ(chmod(file.c_str(), 0700), 0);
  EXPECT_FALSE(is_private_folder(file));
  EXPECT_FALSE(is_private_folder(dir / "gone"));
}

TEST_F(CacheTrust, IsNeverTakenForSomethingElse) {
  const std::string precious = dir.write("precious.safetensors", "x");
  fs::create_directories(cache_folder());
  const auto enter = [&](const std::string& path) {
    std::ofstream(cache_folder() + "/0.source", std::ios::binary) << path << '\0' << path;
  };
  chmod(cache_folder().c_str(), 0700);
  enter(precious);
  EXPECT_TRUE(clear_cache().empty());
  enter(beside());
  EXPECT_TRUE(list_cache().empty());
  dir.write(fs::path(beside()).filename().string(), "x");
  EXPECT_EQ(list_cache().size(), 1u);
  chmod(cache_folder().c_str(), 0770);  // others may have written the register
  EXPECT_TRUE(list_cache().empty());
  EXPECT_TRUE(clear_cache().empty());
  EXPECT_TRUE(fs::exists(precious) && fs::exists(beside()));
}

}  // namespace
}  // namespace ballast
