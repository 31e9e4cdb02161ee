// scan: what a file would import, in whatever lies in whatever, and what is wrong around it.
#include <gtest/gtest.h>

#include <ballast/scan.hpp>

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

const Global* find(const ScanReport& report, std::string_view name) {
  for (const Global& global : report.globals) {
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
  const std::string lookalike = py::pickle(kSystem);  // as the bytes of a tensor
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

// What a strict reading would refuse is a finding here, and the globals are named all the same.
TEST(Scan, GoesOnWhereTheArchiveLies) {
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

TEST(Scan, FindsNothingInWhatHoldsNoPickles) {
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
  EXPECT_EQ(report.files, 2u);
  EXPECT_FALSE(report.is_safe());
}

TEST(Scan, SaysWhatItCannotRead) {
  const TempDir dir;
  EXPECT_ERROR(scan(dir / "nothing"), Errc::not_found, "");
  EXPECT_ERROR(scan(dir.write("x.7z", "7z\xbc\xaf\x27\x1c....")), Errc::unsupported, "a 7z archive");
}

TEST(Scan, StopsAtArchivesThatLieInsideEachOtherTooDeep) {
  std::string file = ZipFile().stored("x", py::pickle(kSystem)).text();
  for (int i = 0; i < 6; ++i) file = ZipFile().stored("x.zip", file).text();
  const ScanReport report = scan_text(file);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_NE(report.findings[0].what.find("too deep"), std::string::npos);
}

}  // namespace
}  // namespace ballast
