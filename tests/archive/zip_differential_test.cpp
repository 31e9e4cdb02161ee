// Thousands of damaged archives, shown to Python's zipfile, to libzip and to us. If those two disagree, we must refuse;
// if we read an archive, all three must have read the same members with the same content.
#include <gtest/gtest.h>
#include <zip.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/damaged_zips.hpp"
#include "builders/temp_dir.hpp"
#include "builders/zip_file.hpp"
#include "formats/archive/zip.hpp"
#include "support/expect_error.hpp"

namespace ballast::archive {
namespace {

using test::Sample;
using test::u32;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

const std::string kRefused = "refused";

// One line for each archive, as zipfile_opinions.py prints it.
class Opinion {
 public:
  void add(std::string_view name, std::string_view content) {
    if (!text_.empty()) text_ += ';';
    text_ += hex(name) + "=" + hex(content);
  }
  std::string text() const { return "read " + text_; }

 private:
  std::string text_;
};

std::string opinion_of_ours(const std::string& archive) {
  const auto bytes = std::as_bytes(std::span(archive));
  Opinion opinion;
  try {
    const Zip zip = read_zip(memory_source({bytes.begin(), bytes.end()}), {});
    for (const ZipMember& member : zip.members) {
      const StoragePtr storage = member_storage(zip, member);
      std::string content(storage->size_bytes(), '\0');
      storage->read(0, std::as_writable_bytes(std::span(content)));
      if (test::crc32_of(content) != storage->declared_crc32()) return kRefused;  // as `verify` would
      opinion.add(member.name, content);
    }
  } catch (const Error&) {
    return kRefused;
  }
  return opinion.text();
}

std::optional<std::string> read_with_libzip(zip_t* archive, zip_uint64_t index) {
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(zip_fopen_index(archive, index, 0), zip_fclose);
  if (!file) return std::nullopt;
  std::string content, piece(4096, '\0');
  for (;;) {
    const zip_int64_t got = zip_fread(file.get(), piece.data(), piece.size());
    if (got < 0) return std::nullopt;
    if (got == 0) return content;
    content.append(piece, 0, static_cast<std::size_t>(got));
  }
}

std::string opinion_of_libzip(const std::string& archive) {
  zip_source_t* source = zip_source_buffer_create(archive.data(), archive.size(), 0, nullptr);
  const std::unique_ptr<zip_t, decltype(&zip_discard)> zip(zip_open_from_source(source, ZIP_RDONLY, nullptr),
                                                           zip_discard);
  if (!zip) {
    zip_source_free(source);
    return kRefused;
  }
  Opinion opinion;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip.get(), 0); ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* name = zip_get_name(zip.get(), index, ZIP_FL_ENC_RAW);
    const auto content = read_with_libzip(zip.get(), index);
    if (name == nullptr || !content) return kRefused;
    opinion.add(name, *content);
  }
  return opinion.text();
}

std::vector<std::string> opinions_of_python(const std::vector<Sample>& samples) {
  const test::TempDir folder;
  std::string batch;
  for (const Sample& sample : samples) batch += u32(sample.archive.size()) + sample.archive;
  const std::string command =
      "python3 " BALLAST_SOURCE_DIR "/tests/archive/zipfile_opinions.py " + folder.write("batch", batch);
  const std::unique_ptr<FILE, decltype(&pclose)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output, piece(1 << 16, '\0');
  for (std::size_t got; pipe && (got = fread(piece.data(), 1, piece.size(), pipe.get())) != 0;)
    output.append(piece, 0, got);

  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = output.find('\n', at)) != output.npos; at = end + 1)
    lines.push_back(output.substr(at, end - at));
  return lines;
}

void compare(const std::vector<Sample>& samples) {
  const auto python = opinions_of_python(samples);
  if (python.empty()) GTEST_SKIP() << "no Python with zipfile";
  ASSERT_EQ(python.size(), samples.size());

  std::size_t read = 0, in_doubt = 0, failures = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string ours = opinion_of_ours(samples[i].archive);
    const std::string libzip = opinion_of_libzip(samples[i].archive);
    in_doubt += python[i] != libzip;
    if (ours == kRefused) continue;
    ++read;
    if (ours == python[i] && ours == libzip) continue;
    if (++failures <= 20)
      ADD_FAILURE() << samples[i].what << "\n   ours: " << ours << "\n python: " << python[i]
                    << "\n libzip: " << libzip;
  }
  EXPECT_EQ(failures, 0u);
  // zipfile and libzip must disagree about some archives, and we must read some: not every change is damage, such as
  // one of a time or an attribute.
  EXPECT_GT(in_doubt, 0u);
  EXPECT_GT(read, 0u);
}

TEST(ZipDifferential, AgreesAboutDamagedBytes) { compare(test::damaged_bytes()); }

TEST(ZipDifferential, AgreesAboutStructuralLies) { compare(test::structural_lies()); }

TEST(ZipDifferential, AllThreeReadGoodArchives) {
  std::vector<Sample> samples;
  for (const test::ZipFile& file : test::good_archives()) samples.push_back({"nothing", file.text()});
  const auto python = opinions_of_python(samples);
  if (python.empty()) GTEST_SKIP() << "no Python with zipfile";
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NE(python[i], kRefused);
    EXPECT_EQ(opinion_of_libzip(samples[i].archive), python[i]);
    EXPECT_EQ(opinion_of_ours(samples[i].archive), python[i]);
  }
}

}  // namespace
}  // namespace ballast::archive
