// Archives for zip_differential_test.cpp: good ones, and thousands of ways to damage them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "builders/zip_file.hpp"

namespace ballast::test {

struct Sample {
  std::string what;  // what was done to the archive
  std::string archive;
};

template <class Part>
using Lies = std::vector<std::pair<std::string, std::function<void(Part&)>>>;

// Archives that zipfile, libzip and we all read: as Python writes them, as torch does, with zip64 fields, with an
// archive inside.
inline std::vector<ZipFile> good_archives() {
  const std::string inner = ZipFile().stored("in", "side").text();
  return {
      ZipFile().stored("a", "data").deflated("d/b", std::string(300, 'b')).stored("d/", "").comment("comment"),
      ZipFile()
          .streamed("m/data.pkl", "pickle")
          .aligned(16)
          .streamed("m/v", "3\n", true)
          .aligned(16)
          .stored("m/e", "")
          .zip64(),
      ZipFile()
          .stored("n", "numpy")
          .change([](ZipEntry& e) { e.local.extra = extra_record(1, u64(5) + u64(5)); })
          .deflated("z", "zip64")
          .change([](ZipEntry& e) {
            e.local.extra = extra_record(1, u64(5) + u64(e.data.size()));
            e.central.extra = extra_record(1, u64(5) + u64(e.data.size()) + u64(56));
            for (auto* h : {&e.local, &e.central}) h->bytes = h->packed_bytes = 0xFFFFFFFF;
            e.header_offset = 0xFFFFFFFF;
          }),
      ZipFile().stored("inner.zip", inner).streamed("last.zip", inner),
  };
}

// Every byte changed, every field saturated or zeroed, every byte taken away or doubled, every possible end.
inline std::vector<Sample> damaged_bytes() {
  using namespace std::string_literals;
  std::vector<Sample> samples;
  const auto good = good_archives();
  for (std::size_t k = 0; k < good.size(); ++k) {
    const std::string whole = good[k].text();
    const auto add = [&](const char* kind, std::size_t at, std::string archive) {
      samples.push_back(
          {kind + " at byte "s + std::to_string(at) + " of archive " + std::to_string(k), std::move(archive)});
    };
    const auto overwritten = [&](std::size_t at, const std::string& bytes) {
      std::string text = whole;
      return text.replace(at, bytes.size(), bytes).substr(0, whole.size());
    };
    add("nothing", 0, whole);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int flip : {0x01, 0x08, 0x80, 0xFF})
        add("flipped bits", at, overwritten(at, std::string(1, static_cast<char>(whole[at] ^ flip))));
      add("a saturated field", at, overwritten(at, u16(0xFFFF)));
      add("a saturated long field", at, overwritten(at, u32(0xFFFFFFFF)));
      add("a zeroed long field", at, overwritten(at, u32(0)));
      add("a byte taken out", at, whole.substr(0, at) + whole.substr(at + 1));
      add("a byte doubled", at, whole.substr(0, at + 1) + whole.substr(at));
      add("the end", at, whole.substr(0, at));
    }
  }
  return samples;
}

inline Lies<ZipEntry> lies_about_a_member() {
  using namespace std::string_literals;
  return {
      {"another name in the local header", [](ZipEntry& e) { e.local.name = "x"; }},
      {"a name with a zero", [](ZipEntry& e) { e.local.name = e.central.name = "x\0y"s; }},
      {"no name", [](ZipEntry& e) { e.local.name = e.central.name = ""; }},
      {"the name of another", [](ZipEntry& e) { e.local.name = e.central.name = "a"; }},
      {"a name that is no UTF-8",
       [](ZipEntry& e) {
         e.local.name = e.central.name = "\xff";
         e.local.flags |= 0x800;
         e.central.flags |= 0x800;
       }},
      {"a name in another code page", [](ZipEntry& e) { e.local.name = e.central.name = "\xff"; }},
      {"a backslash", [](ZipEntry& e) { e.local.name = e.central.name = "..\\x"; }},
      {"a way out", [](ZipEntry& e) { e.local.name = e.central.name = "../x"; }},
      {"a second name",
       [](ZipEntry& e) { e.central.extra = extra_record(0x7075, "\1" + u32(crc32_of(e.central.name)) + "x"); }},
      {"not in the directory", [](ZipEntry& e) { e.is_listed = false; }},
      {"only in the directory", [](ZipEntry& e) { e.has_local = false; }},
      {"bytes before it", [](ZipEntry& e) { e.before = "hidden"; }},
      {"bytes behind it", [](ZipEntry& e) { e.descriptor += "hidden"; }},
      {"no descriptor", [](ZipEntry& e) { e.descriptor = ""; }},
      {"a long descriptor",
       [](ZipEntry& e) {
         e.descriptor = "PK\x07\x08" + u32(e.central.crc32) + u64(e.central.packed_bytes) + u64(e.central.bytes);
       }},
      {"a descriptor without signature",
       [](ZipEntry& e) { e.descriptor = u32(e.central.crc32) + u32(e.central.packed_bytes) + u32(e.central.bytes); }},
      {"a descriptor that lies", [](ZipEntry& e) { e.descriptor = "PK\x07\x08" + u32(1) + u32(2) + u32(3); }},
      {"a flag in both headers",
       [](ZipEntry& e) {
         e.local.flags ^= 8;
         e.central.flags ^= 8;
       }},
      {"a method in both headers", [](ZipEntry& e) { e.local.method = e.central.method = e.central.method ^ 8; }},
      {"method 12", [](ZipEntry& e) { e.local.method = e.central.method = 12; }},
      {"encryption",
       [](ZipEntry& e) {
         e.local.flags |= 1;
         e.central.flags |= 1;
       }},
      {"a patch",
       [](ZipEntry& e) {
         e.local.flags |= 0x20;
         e.central.flags |= 0x20;
       }},
      {"strong encryption",
       [](ZipEntry& e) {
         e.local.flags |= 0x40;
         e.central.flags |= 0x40;
       }},
      {"a larger size in both",
       [](ZipEntry& e) {
         ++e.central.bytes;
         ++e.local.bytes;
       }},
      {"a smaller size in both",
       [](ZipEntry& e) {
         --e.central.bytes;
         --e.local.bytes;
       }},
      {"both sizes larger",
       [](ZipEntry& e) {
         for (auto* h : {&e.local, &e.central}) {
           ++h->bytes;
           ++h->packed_bytes;
         }
       }},
      {"both sizes smaller",
       [](ZipEntry& e) {
         for (auto* h : {&e.local, &e.central}) {
           --h->bytes;
           --h->packed_bytes;
         }
       }},
      {"both sizes smaller in the directory",
       [](ZipEntry& e) {
         --e.central.bytes;
         --e.central.packed_bytes;
       }},
      {"bytes behind the stream",
       [](ZipEntry& e) {
         e.data += "xx";
         for (auto* h : {&e.local, &e.central}) h->packed_bytes += 2;
       }},
      {"another CRC in both", [](ZipEntry& e) { e.local.crc32 = e.central.crc32 = 1; }},
      {"no CRC", [](ZipEntry& e) { e.local.crc32 = e.central.crc32 = 0; }},
      {"another CRC in the directory", [](ZipEntry& e) { e.central.crc32 = 1; }},
      {"another disk", [](ZipEntry& e) { e.disk = 1; }},
      {"a disk in a zip64 field",
       [](ZipEntry& e) {
         e.disk = 0xFFFF;
         e.central.extra = extra_record(1, u32(0));
       }},
      {"version 6.4", [](ZipEntry& e) { e.central.version = 64; }},
      {"version 6.4 in the local header", [](ZipEntry& e) { e.local.version = 64; }},
      {"a comment", [](ZipEntry& e) { e.comment = "PK\x05\x06"; }},
      {"the header of the first", [](ZipEntry& e) { e.header_offset = 0; }},
      {"a header inside of it", [](ZipEntry& e) { e.header_offset = 4; }},
      {"an empty zip64 field", [](ZipEntry& e) { e.central.extra = extra_record(1, ""); }},
      {"a short zip64 field",
       [](ZipEntry& e) {
         e.central.bytes = 0xFFFFFFFF;
         e.central.extra = extra_record(1, u32(e.local.bytes));
       }},
      {"a zip64 field for one size",
       [](ZipEntry& e) {
         e.central.extra = extra_record(1, u64(e.central.bytes));
         e.central.bytes = 0xFFFFFFFF;
       }},
      {"a zip64 field for the other size",
       [](ZipEntry& e) {
         e.central.extra = extra_record(1, u64(e.central.packed_bytes));
         e.central.packed_bytes = 0xFFFFFFFF;
       }},
      {"a zip64 field in full for the other size",
       [](ZipEntry& e) {
         e.central.extra = extra_record(1, u64(e.central.bytes) + u64(e.central.packed_bytes));
         e.central.packed_bytes = 0xFFFFFFFF;
       }},
      {"two zip64 fields",
       [](ZipEntry& e) {
         e.central.extra = extra_record(1, u64(e.central.bytes)) + extra_record(1, u64(1));
         e.central.bytes = 0xFFFFFFFF;
       }},
      {"a zip64 size of all bits",
       [](ZipEntry& e) {
         e.central.bytes = e.central.packed_bytes = 0xFFFFFFFF;
         e.central.extra = extra_record(1, u64(UINT64_MAX) + u64(UINT64_MAX));
       }},
      {"half a record", [](ZipEntry& e) { e.central.extra = "\x55\x54\x09"; }},
      {"a record that is too long", [](ZipEntry& e) { e.central.extra = "\x55\x54\x09\0xx"s; }},
      {"a local record that is too long", [](ZipEntry& e) { e.local.extra = "\x55\x54\x09\0xx"s; }},
      {"padding in the extra field", [](ZipEntry& e) { e.local.extra = e.central.extra = std::string(3, '\0'); }},
      {"no local signature", [](ZipEntry& e) { e.local.signature = "PK\x03\x03"; }},
      {"no central signature", [](ZipEntry& e) { e.central.signature = "PK\x01\x01"; }},
  };
}

inline Lies<ZipEnd> lies_about_the_end() {
  return {
      {"an end record in the comment", [](ZipEnd& e) { e.comment = ZipFile().text(); }},
      {"an archive in the comment", [](ZipEnd& e) { e.comment = ZipFile().stored("x", "y").text(); }},
      {"a signature in the comment", [](ZipEnd& e) { e.comment = "PK\x05\x06"; }},
      {"a signature in a long comment", [](ZipEnd& e) { e.comment = "PK\x05\x06" + std::string(100, '\0'); }},
      {"a locator in the comment", [](ZipEnd& e) { e.comment = "PK\x06\x07" + std::string(40, '\0'); }},
      {"bytes before the directory",
       [](ZipEnd& e) {
         e.before_directory = "xxxx";
         e.directory_offset += 4;
       }},
      {"bytes before the directory, unknown", [](ZipEnd& e) { e.before_directory = "xxxx"; }},
      {"bytes behind the directory", [](ZipEnd& e) { e.before_end = "xxxx"; }},
      {"bytes behind the directory, in it",
       [](ZipEnd& e) {
         e.before_end = "xxxx";
         e.directory_bytes += 4;
       }},
      {"a locator that leads nowhere", [](ZipEnd& e) { e.before_end = "PK\x06\x07" + u32(0) + u64(0) + u32(1); }},
      {"fewer members", [](ZipEnd& e) { e.member_count = e.members_on_disk = 2; }},
      {"fewer members on this disk", [](ZipEnd& e) { e.members_on_disk = 2; }},
      {"more members", [](ZipEnd& e) { e.member_count = e.members_on_disk = 4; }},
      {"no members",
       [](ZipEnd& e) {
         e.member_count = e.members_on_disk = 0;
         e.directory_bytes = 0;
       }},
      {"saturated",
       [](ZipEnd& e) {
         e.member_count = e.members_on_disk = 0xFFFF;
         e.directory_bytes = e.directory_offset = 0xFFFFFFFF;
       }},
      {"a directory of one entry",
       [](ZipEnd& e) {
         e.directory_bytes = 47;
         e.member_count = e.members_on_disk = 1;
       }},
      {"another disk", [](ZipEnd& e) { e.disk = e.directory_disk = 1; }},
  };
}

inline Lies<Zip64End> lies_about_the_zip64_end() {
  return {
      {"fewer members", [](Zip64End& e) { e.member_count = e.members_on_disk = 2; }},
      {"another directory", [](Zip64End& e) { e.directory_offset = 0; }},
      {"a shorter directory", [](Zip64End& e) { e.directory_bytes = 47; }},
      {"another disk", [](Zip64End& e) { e.disk = 1; }},
      {"a locator of another disk", [](Zip64End& e) { e.locator_disk = 1; }},
      {"no disks", [](Zip64End& e) { e.disk_count = 0; }},
      {"two disks", [](Zip64End& e) { e.disk_count = 2; }},
      {"a locator that lies", [](Zip64End& e) { e.record_offset -= 1; }},
      {"an extension",
       [](Zip64End& e) {
         e.extension = "extended";
         e.rest_bytes += 8;
       }},
      {"bytes behind the record", [](Zip64End& e) { e.between = "hidden"; }},
      {"a longer record", [](Zip64End& e) { e.rest_bytes = 1000; }},
  };
}

// Builds three members, one of which lies.
inline ZipFile three_members(const std::string& liar, const std::function<void(ZipEntry&)>& lie) {
  ZipFile file;
  const auto maybe = [&](const char* name) {
    if (liar == name) file.change(lie);
  };
  file.stored("a", "data");
  maybe("a");
  file.deflated("b", std::string(200, 'b'));
  maybe("b");
  file.streamed("c", "more");
  maybe("c");
  return file;
}

// Lies that changing a single byte cannot produce.
inline std::vector<Sample> structural_lies() {
  const ZipFile base = three_members("none", nullptr);
  const std::string whole = base.text();
  std::vector<Sample> samples;
  const auto add = [&](const std::string& what, const ZipFile& file) { samples.push_back({what, file.text()}); };
  const auto add_text = [&](const std::string& what, const std::string& text) { samples.push_back({what, text}); };

  for (const auto& [what, lie] : lies_about_a_member()) {
    for (const char* member : {"a", "b", "c"}) {
      const ZipFile file = three_members(member, lie);
      add(what + " of member " + member, file);
      add(what + " of member " + member + ", with zip64 records", ZipFile(file).zip64());
    }
  }
  for (const auto& [what, lie] : lies_about_the_end()) {
    add(what, ZipFile(base).change_end(lie));
    add(what + ", with zip64 records", ZipFile(base).change_end(lie).zip64());
  }
  for (const auto& [what, lie] : lies_about_the_zip64_end()) {
    add("zip64: " + what, ZipFile(base).zip64(lie));
    add("zip64: " + what + ", saturated", ZipFile(base).zip64(lie).change_end([](ZipEnd& e) {
      e.member_count = e.members_on_disk = 0xFFFF;
      e.directory_bytes = e.directory_offset = 0xFFFFFFFF;
    }));
  }

  const std::string other = ZipFile().stored("x", "other").text();
  add("another order", ZipFile(base).list_in_order({2, 0, 1}));
  add("a prefix", ZipFile(base).prefix("MZ"));
  add("a suffix", ZipFile(base).suffix("signed"));
  add("a suffix of zeros", ZipFile(base).suffix(std::string(10, '\0')));
  add_text("another archive behind it", whole + other);
  add_text("another archive before it", other + whole);
  add_text("itself behind it", whole + whole);
  add_text("nothing", "");
  add_text("only an end record", ZipFile().text());
  add_text("an archive that is no archive's data", ZipFile().stored("s", whole).text());
  // An inner archive whose offsets are those of the outer file, so that its end record leads to its own directory.
  for (const bool is_last : {false, true}) {
    const std::string hidden = ZipFile()
                                   .stored("h", "hidden")
                                   .change([](ZipEntry& e) { e.header_offset = 31; })
                                   .change_end([](ZipEnd& e) { e.directory_offset += 31; })
                                   .text();
    ZipFile outer = ZipFile().stored("s", hidden);
    if (!is_last) outer.stored("t", "tail");
    add("an inner archive that counts from the file's beginning", outer);
    add("an inner archive that counts from the file's beginning, with zip64 records", outer.zip64());
  }
  for (const std::size_t pad : {0u, 1u, 16u, 20u, 22u, 65535u})
    add_text("an end record in the data, far from the end " + std::to_string(pad),
             ZipFile().stored("s", ZipFile().text() + std::string(pad, 'x')).text());
  return samples;
}

}  // namespace ballast::test
