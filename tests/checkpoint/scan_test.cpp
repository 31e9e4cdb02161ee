// scan: what a file would import, however deeply it is nested in other files, and what is wrong around it.
#include <gtest/gtest.h>

#include <ballast/scan.hpp>

#include <filesystem>

#include "builders/safetensors_file.hpp"
#include "builders/tar_file.hpp"
#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using test::TarFile;
using test::TempDir;
using test::TorchStream;
using test::TorchZip;
using test::ZipFile;

const py::Ops kSystem = py::call("os", "system", {py::text("id")});

ScanReport scan_text(const std::string& file) {
  const TempDir dir;
  return scan(dir.write("file", file));
}

bool has_finding(const ScanReport& report, std::string_view where, std::string_view what) {
  for (const ScanFinding& finding : report.findings) {
    if (finding.where.ends_with(where) && finding.what.find(what) != std::string::npos) return true;
  }
  return false;
}

const ScannedGlobal* find(const ScanReport& report, std::string_view name) {
  for (const ScannedGlobal& global : report.globals) {
    if (global.name == name) return &global;
  }
  return nullptr;
}

void expect_system(const ScanReport& report, const std::string& member, std::uint64_t offset) {
  EXPECT_FALSE(report.is_safe());
  const Global* system = find(report, "system");
  ASSERT_NE(system, nullptr);
  EXPECT_EQ(system->module, "os");
  EXPECT_EQ(system->verdict, Verdict::dangerous);
  EXPECT_FALSE(system->why.empty());
  EXPECT_EQ(system->member, member);
  EXPECT_EQ(system->offset, offset);
}

TEST(Scan, NamesTheOpcodeInABarePickle) { expect_system(scan_text(py::pickle(kSystem)), "", 2); }

TEST(Scan, NamesTheMemberOfATorchZip) {
  TorchZip zip;
  zip.object(kSystem);
  expect_system(scan_text(zip.text()), "archive/data.pkl", 2);
}

TEST(Scan, LooksIntoEveryMemberOfAnArchive) {
  expect_system(scan_text(ZipFile().stored("a.txt", "hello").deflated("b/c.bin", py::pickle(kSystem)).text()),
                "b/c.bin", 2);
  const std::string inner = ZipFile().stored("x", py::pickle(kSystem)).text();
  expect_system(scan_text(ZipFile().stored("inner.zip", inner).text()), "inner.zip/x", 2);
}

TEST(Scan, LooksIntoEveryPickleOfAStream) {
  TorchStream stream;
  stream.object(kSystem);
  const auto parts = stream.parts();
  expect_system(scan_text(stream.text()), "", parts[0].size() + parts[1].size() + parts[2].size() + 2);
  const std::string first = py::pickle(py::integer(1));
  expect_system(scan_text(first + py::pickle(kSystem)), "", first.size() + 2);
}

TEST(Scan, DoesNotTakeTheNumbersOfAStreamForPickles) {
  TorchStream stream;
  const std::string lookalike = py::pickle(kSystem);  // the bytes of a tensor look like a pickle
  stream.object(py::tensor(py::storage("Byte", "a", static_cast<std::int64_t>(lookalike.size())), 0, {1}, {1}))
      .record("a", lookalike.size(), lookalike);
  const ScanReport report = scan_text(stream.text());
  EXPECT_TRUE(report.is_safe());
  EXPECT_TRUE(report.findings.empty());
}

TEST(Scan, LooksAtWhatFollowsAStream) {
  TorchStream stream;
  stream.object(py::none());
  const ScanReport report = scan_text(stream.text() + py::pickle(kSystem));
  expect_system(report, "", stream.text().size() + 2);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].what, "bytes follow the checkpoint");
}

TEST(Scan, NamesWhatComesBeforeTheStreamBreaks) {
  const ScanReport report = scan_text("\x80\x02" + kSystem + "\xff");
  expect_system(report, "", 2);
  EXPECT_FALSE(report.findings.empty());
}

TEST(Scan, LooksIntoStringsThatAreFilesOfTheirOwn) {
  const ScanReport report = scan_text(py::pickle(py::bytes(py::pickle(kSystem))));
  EXPECT_FALSE(report.is_safe());
  EXPECT_TRUE(find(report, "system")->member.starts_with("@"));
}

TEST(Scan, LooksIntoTheMembersOfATar) {
  expect_system(scan_text(TarFile()
                              .file("sys_info", "")
                              .file("pickle", py::pickle(kSystem))
                              .file("storages", py::pickle(py::integer(0)))
                              .text()),
                "pickle", 2);
}

TEST(Scan, LooksIntoAnArrayOfObjects) {
  const std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
  const std::string npy = "\x93NUMPY\x01" + std::string(1, '\0') + test::u16(header.size()) + header;
  expect_system(scan_text(npy + py::pickle(kSystem)), "", npy.size() + 2);
}

std::string npy_of(const std::string& descr) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }";
  return "\x93NUMPY\x01" + std::string(1, '\0') + test::u16(header.size()) + header;
}

TEST(Scan, LooksIntoAnArrayOfObjectsByAnyOfTheirNames) {
  for (const char* descr : {"object", "object_", "O8", "i4,O", "O,O", "=O"}) {
    SCOPED_TRACE(descr);
    expect_system(scan_text(npy_of(descr) + py::pickle(kSystem)), "", npy_of(descr).size() + 2);
  }
}

TEST(Scan, DoesNotTakeTheLettersOfAnArrayForAPickle) {
  const ScanReport report = scan_text(npy_of("|S12") + "cat\ndog\ni.R.");
  EXPECT_TRUE(report.globals.empty());
  EXPECT_TRUE(report.findings.empty());
}

// torch.storage._load_from_bytes takes all that torch.load takes.
TEST(Scan, LooksIntoArchivesInStrings) {
  const std::string evil = py::pickle(kSystem);
  const std::string files[] = {
      ZipFile().stored("archive/data.pkl", evil).text(), ZipFile().deflated("archive/data.pkl", evil).text(),
      ZipFile().stored("x.bin", std::string(100'000, 'x')).stored("archive/data.pkl", evil).text(),  // a far one
      TarFile().file("archive/data.pkl", evil).text(), npy_of("|O") + evil};
  for (const std::string& file : files) {
    const ScanReport report = scan_text(py::pickle(py::call("torch.storage", "_load_from_bytes", {py::bytes(file)})));
    EXPECT_FALSE(report.is_safe());
    ASSERT_NE(find(report, "system"), nullptr);
    EXPECT_TRUE(find(report, "system")->member.starts_with("@"));
  }
}

// A name that is computed is in no list of names. A member without PROTO at its beginning could be anything.
TEST(Scan, ReportsNamesThatAnOldPickleComputes) {
  const std::string computed =
      "coperator\nconcat\n(S'o'\nS's'\ntRcoperator\nconcat\n(S'sys'\nS'tem'\ntR\x93(S'id'\ntR.";
  const ScanReport report = scan_text(ZipFile().stored("archive/data.pkl", computed).text());
  EXPECT_EQ(report.files[0].pickles, 1u);
  EXPECT_TRUE(has_finding(report, "archive/data.pkl", "STACK_GLOBAL"));
  std::string noisy = "coperator\nconcat\n0";
  for (int i = 0; i < 200; ++i) noisy += "K\x01}b0";  // complaints that hide the one that matters
  EXPECT_FALSE(scan_text(ZipFile().stored("archive/data.pkl", noisy + computed).text()).findings.empty());
}

TEST(Scan, ReadsATarWhoseFirstNameIsAPickle) {
  const ScanReport report = scan_text(TarFile().file("cos\nsystem\n(S'id'\ntR.", "x").text());
  expect_system(report, "", 0);
  EXPECT_TRUE(has_finding(report, "file", "can be read as a pickle, too"));
}

// The eight bytes of the header's length are also the opcode of a string and the length of that string.
TEST(Scan, ReadsASafetensorsFileThatIsAPickle) {
  constexpr std::size_t kString = 0x20, kHeader = kString * 256 + 'X';
  std::string header = R"({"__metadata__":{"a":")";
  header.resize(kString - 3, 'p');  // the string ends here, and the pickle goes on inside the string of the JSON
  header += "U~" + std::string(126, 'q');
  const std::string end = R"("},"t":{"dtype":"U8","shape":[31],"data_offsets":[0,31]}})";
  while (kHeader - header.size() > 256) header += "U@" + std::string(64, 'q');
  const std::size_t left = kHeader - header.size() - 4;  // for two strings, the last of which ends with the header
  const std::size_t last = 100, first = left - last;
  header += "U" + std::string(1, static_cast<char>(first)) + std::string(first, 'q');
  header += "U" + std::string(1, static_cast<char>(last)) + std::string(last - end.size(), 'q') + end;
  const std::string evil = "0cos\nsystem\n(S'touch'\ntR.";
  const ScanReport report = scan_text(test::u64(kHeader) + header + evil + std::string(31 - evil.size(), '.'));
  EXPECT_FALSE(report.is_safe());
  EXPECT_TRUE(has_finding(report, "file", "can be read as a pickle, too"));
}

TEST(Scan, ReportsPackedMembersThatItDoesNotLookInto) {
  const std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  EXPECT_TRUE(has_finding(scan_text(ZipFile().stored("x.pkl.gz", gzip).text()), "x.pkl.gz",
                          "this is a gzip file that breaks off or goes on behind its end: not looked into"));
  // The numbers of a tensor may begin like a gzip file.
  EXPECT_TRUE(scan_text(ZipFile().stored("data/0", "\x1f\x8b\x3f\x12 numbers").text()).findings.empty());
}

TEST(Scan, InflatesNoMoreOfAFileThanAllowedHoweverItIsNested) {
  const std::string inner = ZipFile().deflated("zeros", std::string(100'000, '\0')).text();
  ZipFile outer;
  for (int i = 0; i < 20; ++i) outer.deflated("inner" + std::to_string(i) + ".zip", inner);
  const TempDir dir;
  const std::string file = dir.write("bomb.zip", outer.text());
  EXPECT_TRUE(scan(file).findings.empty());
  ScanOptions options;
  options.limits.max_inflated_bytes = 1'000'000;
  EXPECT_TRUE(has_finding(scan(file, options), ".zip", "and no further: as much has been inflated as"));
}

// An archive that a strict reading would refuse is a finding here, and the globals are named all the same.
TEST(Scan, GoesOnIfTheArchiveLies) {
  const auto lying = ZipFile().stored("x/data.pkl", py::pickle(kSystem)).change([](test::ZipEntry& e) {
    e.local.flags = 0x20;
    e.central.flags = 0x20;
  });
  const ScanReport report = scan_text(lying.text());
  expect_system(report, "x/data.pkl", 2);
  EXPECT_FALSE(report.findings.empty());
}

TEST(Scan, ReadsAFileThatIsTwoThings) {
  TorchZip zip;
  zip.object(kSystem);
  const ScanReport report = scan_text(py::pickle(py::integer(1)) + zip.text());
  EXPECT_FALSE(report.is_safe());
  EXPECT_FALSE(report.findings.empty());
}

TEST(Scan, FindsNothingInAFileWithoutPickles) {
  const ScanReport report = scan_text(test::SafetensorsFile().tensor("w", "F32", {1}, 0, 4).data(4).text());
  EXPECT_TRUE(report.is_safe());
  EXPECT_TRUE(report.globals.empty());
  EXPECT_TRUE(report.findings.empty());
}

TEST(Scan, LooksAtEveryFileOfAFolder) {
  const TempDir dir;
  dir.write("a.pkl", py::pickle(kSystem));
  dir.write("b.pkl", py::pickle(py::integer(1)));
  const ScanReport report = scan(dir.path());
  EXPECT_EQ(report.files.size(), 2u);
  EXPECT_FALSE(report.is_safe());
}

TEST(Scan, SaysInWhichFileOfAFolderAGlobalIs) {
  const TempDir dir;
  const std::string path = dir.write("a.pkl", py::pickle(kSystem));
  EXPECT_EQ(find(scan(dir.path()), "system")->file, path);
  EXPECT_EQ(find(scan(path), "system")->file, path);
}

TEST(Scan, LooksIntoFoldersOfAFolder) {
  const TempDir dir, other;
  std::filesystem::create_directories(dir / "sub/deeper");
  dir.write("sub/deeper/evil.pkl", py::pickle(kSystem));
  std::filesystem::create_directory_symlink(dir / "sub", dir / "sub/deeper/loop");
  const ScanReport report = scan(dir.path());
  EXPECT_EQ(report.files.size(), 1u);
  EXPECT_FALSE(report.is_safe());
  EXPECT_TRUE(report.findings.empty());
  std::filesystem::create_directory_symlink(other.path(), dir / "elsewhere");
  EXPECT_TRUE(has_finding(scan(dir.path()), "elsewhere", "not looked into"));
}

TEST(Scan, GoesOnInAFolderIfOneFileCannotBeLookedInto) {
  const TempDir dir;
  dir.write("a.tar.gz", "\x1f\x8b....");
  dir.write("b.xz", std::string("\xfd"
                                "7zXZ\0",
                                6));
  dir.write("z.pkl", py::pickle(kSystem));
  const ScanReport report = scan(dir.path());
  EXPECT_EQ(report.files.size(), 3u);
  EXPECT_FALSE(report.is_safe());
  EXPECT_TRUE(has_finding(report, "a.tar.gz", "this is a gzip file: not looked into"));
  EXPECT_TRUE(has_finding(report, "b.xz", "this is an xz file: not looked into"));
}

TEST(Scan, FindsNothingWrongWithTheTextsBesideAModel) {
  const TempDir dir;
  dir.write("README.md", "# A model\n\ncalled so. It is good.\n");
  dir.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  dir.write("merges.txt", "#version: 0.2\nc a\nc ar\n");
  dir.write("vocab.txt", "cat\ndog\nis\n.\n");
  dir.write("config.json", "{}");
  dir.write("page.html", "<!doctype html>");
  dir.write("model.safetensors", test::SafetensorsFile().tensor("w", "F32", {1}, 0, 4).data(4).text());
  const ScanReport report = scan(dir.path());
  EXPECT_EQ(report.files.size(), 7u);
  EXPECT_TRUE(report.globals.empty());
  EXPECT_TRUE(report.findings.empty());
}

TEST(Scan, SaysWhatItCannotRead) {
  const TempDir dir;
  EXPECT_ERROR(scan(dir / "nothing"), Errc::not_found, "");
  EXPECT_ERROR(scan(dir.write("README.md", "# A model\n\nIt is small.\n")), Errc::unsupported, "a text file");
  const ScanReport closed = scan(dir.write("x.7z", "7z\xbc\xaf\x27\x1c...."));
  EXPECT_EQ(closed.safe(), std::nullopt);
  EXPECT_TRUE(has_finding(closed, "x.7z", "this is a 7z archive: not looked into"));
}

TEST(Scan, TellsTrueFromUnknownAndFalse) {
  const auto safe = [](const py::Ops& ops) { return scan_text(py::pickle(ops)).safe(); };
  EXPECT_EQ(safe(py::ordered_dict()), true);
  EXPECT_EQ(safe(py::call("model", "make", {})), std::nullopt);
  EXPECT_EQ(safe(kSystem), false);
  EXPECT_EQ(scan_text(py::pickle(py::none()) + "behind").safe(), std::nullopt);  // a finding
  const TempDir dir;
  const std::string unknown = dir.write("a", py::pickle(py::call("model", "make", {})));
  const std::string known = dir.write("b", py::pickle(py::none()));
  EXPECT_EQ(scan_all({known, unknown}).safe(), std::nullopt);
  EXPECT_EQ(scan_all({known, known}).safe(), true);
  EXPECT_EQ(scan_all({known, dir / "missing"}).safe(), std::nullopt);
  ScanOptions trusting;
  trusting.trusted = {"model.*"};
  EXPECT_EQ(scan_all({known, unknown}, trusting).safe(), true);
}

TEST(Scan, TakesMembersThatAPickleNamesAsStoragesForNumbers) {
  TorchZip zip;
  const std::string lookalike = py::pickle(kSystem);
  zip.object(py::tensor(py::storage("Byte", "0", static_cast<std::int64_t>(lookalike.size())), 0, {1}, {1}));
  zip.record("0", lookalike);
  EXPECT_EQ(scan_text(zip.text()).safe(), true);
  TorchZip other;  // the same member, which no pickle names
  other.object(py::none());
  other.record("0", lookalike);
  EXPECT_EQ(scan_text(other.text()).safe(), false);
}

// The bytes that a pickle hands to a loader are loaded, whatever they begin like.
TEST(Scan, LooksIntoTheBytesThatALoaderIsGiven) {
  const std::string evil = "N0cos\nsystem\n(S'id'\ntR.";
  EXPECT_EQ(scan_text(py::pickle(py::call("torch.storage", "_load_from_bytes", {py::bytes(evil)}))).safe(), false);
  EXPECT_EQ(scan_text(py::pickle(py::call("torch.storage", "_load_from_bytes", {py::bytes("\xff")}))).safe(),
            std::nullopt);
}

TEST(Scan, AndConvertAgreeAboutWhatIsDangerous) {
  const TempDir dir;
  const std::string evil = py::pickle(kSystem);
  TorchZip member;
  member.object(py::ordered_dict());
  const std::string files[] = {py::pickle(py::dict({{"a", py::bytes(evil)}})),
                               ZipFile().stored("x/data.pkl", py::pickle(py::dict({}))).stored("x/more", evil).text()};
  for (const std::string& file : files) {
    const std::string path = dir.write("model.pt", file);
    EXPECT_EQ(scan(path).safe(), false);
    EXPECT_ERROR(refuse_dangerous(open(path)), Errc::unsafe, "names \"os.system\"");
    std::vector<std::byte> bytes(file.size());
    std::copy_n(reinterpret_cast<const std::byte*>(file.data()), file.size(), bytes.begin());
    EXPECT_ERROR(refuse_dangerous(open_bytes(bytes, "<memory>")), Errc::unsafe, "names \"os.system\"");
  }
  // Code that is dangerous without naming anything.
  TorchZip script;
  script.object(py::ordered_dict()).member("code/__torch__.py", "def forward(self): torch.save(self, \"x\")");
  const std::string path = dir.write("script.pt", script.text());
  EXPECT_EQ(scan(path).safe(), false);
  EXPECT_ERROR(refuse_dangerous(open(path)), Errc::unsafe, "TorchScript code that opens or writes files");
}

TEST(Scan, LooksIntoArchivesInEachOtherAsDeepAsIsAllowedAndSaysWhereItStops) {
  std::string file = py::pickle(kSystem);
  for (std::uint64_t i = 0; i < Limits{}.max_archive_depth; ++i) file = ZipFile().stored("x", file).text();
  expect_system(scan_text(file), "x/x/x/x", 2);
  const ScanReport report = scan_text(ZipFile().stored("x", file).text());
  EXPECT_EQ(find(report, "system"), nullptr);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_NE(report.findings[0].what.find("too deep"), std::string::npos);
}

TEST(Scan, LooksIntoTextsOfSixtyFourMebibytesAndNoMore) {
  const TempDir dir;
  std::string text(std::size_t{64} << 20, ' ');
  text.replace(text.size() - 9, 9, "__class__");
  EXPECT_TRUE(has_finding(scan(dir.write("chat.jinja", text)), "chat.jinja", "__class__"));
  EXPECT_TRUE(
      has_finding(scan(dir.write("long.jinja", text + ' ')), "long.jinja", "text of this size is not looked into"));
}

TEST(Scan, TellsOfAStreamThatUnpacksToMoreThanIsAllowed) {
  // A frame of zstd with one block: 1000 times the same byte.
  const std::string frame("\x28\xb5\x2f\xfd\x60\xe8\x02\x43\x1f\x00x", 11);
  ScanOptions options;
  const auto finds_a_bomb = [&](std::uint64_t most) {
    options.limits.max_inflated_bytes = most;
    const ScanReport report = scan_bytes(test::to_bytes(ZipFile().stored("x.zst", frame).text()), "file", options);
    return has_finding(report, "x.zst", "that unpacks to more than");
  };
  EXPECT_TRUE(finds_a_bomb(999));
  EXPECT_FALSE(finds_a_bomb(1000));
}

TEST(Scan, LooksAtWhatThereIs) {
  Checkpoint checkpoint;
  checkpoint.files.push_back({"/no/such/file", 1});
  EXPECT_NO_THROW(refuse_dangerous(checkpoint));
  const TempDir dir;
  const std::string attack = "cos\nsystem\n(S'id'\ntR.";
  checkpoint.files = {{dir.write("model.pkl", attack), attack.size()}};
  EXPECT_ERROR(refuse_dangerous(checkpoint), Errc::unsafe, "os.system");
}

}  // namespace
}  // namespace ballast
