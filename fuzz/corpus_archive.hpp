// The inputs that fuzzing zips and tars begins with.
#pragma once

#include <string>
#include <vector>

#include "builders/tar_file.hpp"
#include "builders/zip_file.hpp"

namespace ballast::fuzz {

inline std::vector<std::string> zips() {
  using namespace test;
  const std::string plain(300, 'x');
  const ZipFile base = ZipFile().stored("a", "data").deflated("b/c", plain).streamed("d", "more");
  std::vector<std::string> inputs = {
      "",
      "PK\x03\x04",
      ZipFile().text(),
      base.text(),
      base.text().substr(0, base.text().size() - 30),
      ZipFile(base).zip64().text(),
      ZipFile(base).comment("a comment").text(),
      ZipFile(base).comment(ZipFile().text()).text(),
      ZipFile(base).prefix("MZ").text(),
      ZipFile(base).suffix("tail").text(),
      ZipFile(base).list_in_order({2, 1, 0}).text(),
      ZipFile().stored("inner.zip", base.text()).text(),
      ZipFile().deflated("bomb", std::string(100'000, '\0')).text(),
      ZipFile().streamed("m/data.pkl", "pickle").aligned().streamed("m/version", "3\n", true).aligned().zip64().text(),
      ZipFile().stored("a", "1").stored("a", "2").text(),
      ZipFile().stored("a", "1").stored("b", "2").change([](ZipEntry& e) { e.header_offset = 0; }).text(),
  };
  const auto add = [&](const auto& lie) {
    inputs.push_back(ZipFile().stored("a", "data").change(lie).stored("b", "").text());
    inputs.push_back(ZipFile().streamed("a", "data", true).change(lie).zip64().text());
  };
  add([](ZipEntry& e) { e.local.name = "z"; });
  add([](ZipEntry& e) { e.local.flags = e.central.flags = 1; });
  add([](ZipEntry& e) { e.local.method = e.central.method = 12; });
  add([](ZipEntry& e) { e.before = "hidden"; });
  add([](ZipEntry& e) { e.is_listed = false; });
  add([](ZipEntry& e) { e.descriptor = u32(e.central.crc32) + u64(e.central.packed_bytes) + u64(e.central.bytes); });
  add([](ZipEntry& e) { e.local.extra = extra_record(1, u64(e.central.bytes) + u64(e.central.packed_bytes)); });
  add([](ZipEntry& e) {
    e.central.extra = extra_record(1, u64(e.central.bytes) + u64(e.central.packed_bytes) + u64(0));
    e.central.bytes = e.central.packed_bytes = 0xFFFFFFFF;
    e.header_offset = 0xFFFFFFFF;
  });
  add([](ZipEntry& e) { e.central.extra = extra_record(0x7075, "\1" + u32(crc32_of("a")) + "a"); });
  return inputs;
}

inline std::vector<std::string> tars() {
  using test::TarFile;
  const TarFile base = TarFile().file("sys_info", "info").file("pickle", "pickle").file("storages", "numbers");
  std::vector<std::string> inputs = {
      "",
      std::string(1024, '\0'),
      base.text(),
      TarFile(base).ending("").text(),
      TarFile().long_name(std::string(200, 'n')).file("short", "data").text(),
      TarFile().pax("path", std::string(200, 'n')).file("short", "data").text(),
      TarFile().pax("size", "4").file("a", "data").text(),
      TarFile().pax("GNU.sparse.major", "1").file("a", "data").text(),
      TarFile().member("g", 'g', TarFile::pax_record("comment", "x")).file("a", "data").text(),
      TarFile().file("a", "1").file("./a", "2").text(),
  };
  for (const char type : {'1', '2', '3', '5', '6', '7', 'K', 'S', 'V', '\0', 'Z'})
    inputs.push_back(TarFile().member("a", type).file("b", "data").text());
  for (const std::size_t offset : {124u, 257u, 345u})
    for (const char* text : {"-4", "\x80", "\xFF\xFF", "ustar  ", "        4", "prefix"})
      inputs.push_back(
          TarFile().file("a", "data").change([=](std::string& header) { TarFile::put(header, offset, text); }).text());
  return inputs;
}

}  // namespace ballast::fuzz
