#include "formats/pickle/scan.hpp"

#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "builders/pickle_writer.hpp"
#include "formats/pickle/machine.hpp"
#include "support/expect_error.hpp"
#include "support/fixtures.hpp"
#include "support/json_file.hpp"

namespace ballast {
namespace {

using pickle::Scan;
using test::PickleWriter;

Scan scan_of(const SourcePtr& source, std::uint64_t first = 0, const Limits& limits = {}) {
  Scan scan;
  pickle::scan_pickles(source, first, source->size_bytes(), "", limits, scan);
  return scan;
}

Scan scan_of(std::string_view bytes, const Limits& limits = {}) { return scan_of(test::source_of(bytes), 0, limits); }

// Lines such as "@12@3:5 os.system": the member and the offset come first.
std::vector<std::string> globals_of(const Scan& scan) {
  std::vector<std::string> lines;
  for (const Global& g : scan.globals)
    lines.push_back(fmt::format("{}:{} {}.{}", g.member, g.offset, g.module, g.name));
  return lines;
}

std::vector<std::string> findings_of(const Scan& scan) {
  std::vector<std::string> lines;
  for (const auto& f : scan.findings) lines.push_back(fmt::format("{}:{} {}", f.member, f.offset, f.what));
  return lines;
}

using Lines = std::vector<std::string>;

std::string attack() { return PickleWriter(2).global("os", "system").text("id").tuple1().reduce().stop().bytes(); }

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kAlphabet[three >> (18 - 6 * j) & 63];
  }
  return out;
}

std::string written_out(std::string_view bytes, std::string_view before_each) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{}{:02x}", before_each, static_cast<unsigned char>(c));
  return out;
}

std::string as_latin1_text(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) out += static_cast<char>(0xC0 | byte >> 6);
    out += byte >= 0x80 ? static_cast<char>(0x80 | (byte & 0x3F)) : c;
  }
  return out;
}

TEST(PickleScan, SeesEveryPickleOfAStream) {
  const std::string benign = PickleWriter(4).text("weights").stop().bytes();
  const auto scan = scan_of(benign + attack() + "N." + attack());
  EXPECT_EQ(globals_of(scan), (Lines{":17 os.system", ":42 os.system"}));
  EXPECT_TRUE(scan.findings.empty());
  EXPECT_EQ(scan.globals[0].verdict, Verdict::dangerous);
  EXPECT_FALSE(scan.globals[0].why.empty());
}

TEST(PickleScan, SeesAnOldPickleBehindANewOne) {
  EXPECT_EQ(globals_of(scan_of("\x80\4N.cos\nsystem\n(S'id'\ntR.")), Lines{":4 os.system"});
  EXPECT_EQ(globals_of(scan_of("\x80\4N.cos\nsystem\n(S'id'\ntR")), Lines{":4 os.system"});  // it would run in part
}

TEST(PickleScan, ReportsBytesBehindTheLastPickleOnce) {
  for (const std::string& tail : {std::string(100, '\0'), std::string(100, '\xff'), std::string("some words\nof text"),
                                  std::string("c\x01\x02\n\x03\n0000"), std::string("\x80\x02\0\0\0\0\0\0", 8)}) {
    const auto scan = scan_of(PickleWriter(2).none().stop().bytes() + tail);
    EXPECT_TRUE(scan.globals.empty());
    EXPECT_EQ(findings_of(scan), Lines{fmt::format(":4 {} bytes follow the last pickle", tail.size())});
  }
}

TEST(PickleScan, TakesNoNamesThatPythonWouldNotTakeForAPickleBehindTheLastOne) {
  const auto named = [](const std::string& module, const std::string& name) {
    return scan_of("N.c" + module + "\n" + name + "\n0000").globals.size();
  };
  EXPECT_EQ(named("a", "b"), 1U);
  EXPECT_EQ(named(std::string(512, 'a'), "b"), 1U);
  EXPECT_EQ(named(std::string(513, 'a'), "b"), 0U);
  for (const char* word : {"", "\xff", "a\xff", "a b"}) {
    EXPECT_EQ(named(word, "b"), 0U) << word;
    EXPECT_EQ(named("a", word), 0U) << word;
  }
}

TEST(PickleScan, TellsOfTheLastBytesHoweverFewTheyAre) {
  for (const std::string tail : {"\x80", "\x80\2", "\x80\2N"})
    EXPECT_EQ(findings_of(scan_of("N." + tail)), Lines{fmt::format(":2 {} bytes follow the last pickle", tail.size())});
}

TEST(PickleScan, TellsOfMorePicklesThanItLooksAt) {
  std::string many;
  for (int i = 0; i <= 1'000'000; ++i) many += "N.";
  EXPECT_EQ(findings_of(scan_of(many)), Lines{":2000000 more than 1000000 pickles, one after the other"});
}

TEST(PickleScan, ListsDangerousFindingsHoweverManyOthersThereAre) {
  const std::string calls = PickleWriter(2).global("a", "B").empty_tuple().reduce().repeat(999, ")R").stop().bytes();
  EXPECT_EQ(scan_of(calls).findings.size(), 999U);
  const std::string one = PickleWriter(2).global("a", "B").empty_tuple().reduce().raw(")R").stop().bytes();
  EXPECT_EQ(scan_of(calls + one).findings.back().what, "calls what it has computed, whatever that is");
  const Scan more = scan_of(calls + one + one + one);
  ASSERT_EQ(more.findings.size(), 1001U);
  EXPECT_EQ(more.findings.back().what, "more findings, which are not listed");
  const std::string computed = PickleWriter(4).global("a", "B").text("b").op('\x93').stop().bytes();
  const Scan dangerous = scan_of(calls + one + one + computed);
  EXPECT_EQ(dangerous.findings.size(), 1002U);
  EXPECT_EQ(dangerous.findings.back().verdict, Verdict::dangerous);
}

TEST(PickleScan, SaysNothingOfBytesBehindThePickleInAString) {
  const auto scan = scan_of(PickleWriter(3).bytes(attack() + "junk\xff").stop());
  EXPECT_EQ(globals_of(scan), Lines{"@7:2 os.system"});
  EXPECT_EQ(findings_of(scan), Lines{});
}

TEST(PickleScan, TellsOfAStringThatBeginsLikeAPickleAndGoesOnTooLong) {
  Limits limits;
  limits.max_pickle_nodes = 100;
  const std::string inner = PickleWriter(2).repeat(200, "]0").none().stop().bytes();
  EXPECT_EQ(findings_of(scan_of(PickleWriter(3).bytes(inner).stop(), limits)),
            Lines{":7 a string that begins like a pickle: the pickle holds more than 100 objects"});
}

// Its bytes cannot be read: that says nothing about what they are.
class BrokenSource final : public Source {
 public:
  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return 100; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw Error(Errc::io, "the disk is gone"); }

 private:
  std::string name_ = "broken";
};

TEST(PickleScan, DoesNotTakeAReadThatFailsForTheEndOfAPickle) {
  EXPECT_ERROR(scan_of(std::make_shared<BrokenSource>()), Errc::io, "the disk is gone");
}

TEST(PickleScan, IsToldByNamesThatPythonWouldTake) {
  const auto is_telling = [](const std::string& module, const std::string& name) {
    return scan_of(PickleWriter(2).global(module, name).stop()).is_telling();
  };
  EXPECT_TRUE(is_telling("os", "system"));
  EXPECT_TRUE(is_telling("collections", "OrderedDict"));
  EXPECT_FALSE(is_telling("model", "Net"));
  EXPECT_FALSE(is_telling("os.a b", "system"));
  EXPECT_FALSE(is_telling("os", "sys tem"));
}

TEST(PickleScan, SaysWhereAPickleBreaksAndWhatItNamedBefore) {
  const auto scan = scan_of(PickleWriter(2).global("os", "system").raw("\xff").global("a", "b"));
  EXPECT_EQ(globals_of(scan), Lines{":2 os.system"});
  EXPECT_EQ(findings_of(scan), Lines{":13 0xff is no pickle instruction"});
}

TEST(PickleScan, GoesOnBehindAnInstructionThatMakesNoSense) {
  const auto scan = scan_of(PickleWriter(2).raw("0").global("os", "system").stop());
  EXPECT_EQ(globals_of(scan), Lines{":3 os.system"});
  EXPECT_EQ(findings_of(scan), Lines{":2 POP needs 1 values, the stack holds 0"});
}

TEST(PickleScan, LooksIntoStrings) {
  const std::string inner = attack();
  EXPECT_EQ(globals_of(scan_of(PickleWriter(3).bytes(inner).stop())), Lines{"@7:2 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(2).raw("U").little_endian(inner.size(), 1).raw(inner).stop())),
            Lines{"@4:2 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(2).text(base64(inner)).stop())), Lines{"@7:2 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(2).text(written_out(inner, "")).stop())), Lines{"@7:2 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(2).text("b'" + written_out(inner, "\\x") + "'").stop())),
            Lines{"@7:2 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(2).text(as_latin1_text(inner)).stop())), Lines{"@7:2 os.system"});
  EXPECT_EQ(globals_of(scan_of("S'" + written_out(inner, "\\x") + "'\n.")), Lines{"@0:2 os.system"});
}

TEST(PickleScan, LooksIntoStringsForOldPickles) {
  const std::string inner = "cos\nsystem\n(S'id'\ntR.";
  EXPECT_EQ(globals_of(scan_of(PickleWriter(3).bytes(inner).stop())), Lines{"@7:0 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(3).text(base64(inner)).stop())), Lines{"@7:0 os.system"});
}

TEST(PickleScan, LooksIntoLargeStrings) {
  const std::string inner = PickleWriter(3).bytes(std::string(100'000, '\0')).raw(attack()).bytes();
  EXPECT_EQ(globals_of(scan_of(PickleWriter(3).bytes(inner).stop())), Lines{"@7:100009 os.system"});
  EXPECT_EQ(globals_of(scan_of(PickleWriter(3).text(base64(inner)).stop())), Lines{"@7:100009 os.system"});
}

TEST(PickleScan, LooksIntoStringsOfStringsToADepth) {
  std::string nested = attack();
  for (int i = 0; i < 4; ++i) nested = PickleWriter(3).bytes(nested).stop().bytes();
  EXPECT_EQ(globals_of(scan_of(nested)), Lines{"@7@7@7@7:2 os.system"});
  const auto deeper = scan_of(PickleWriter(3).bytes(nested).stop());
  EXPECT_TRUE(deeper.globals.empty());
  EXPECT_EQ(findings_of(deeper), Lines{"@7@7@7@7:7 pickles inside each other, deeper than 4"});
}

TEST(PickleScan, FindsNothingInOrdinaryStrings) {
  PickleWriter writer(3);
  for (const char* text : {"class Net(nn.Module):\n    def forward(self, x):\n        return x.\n",
                           "0123456789abcdef0123456789abcdef01234567", "layer1.weight", "c\n\n.", "{\"a\": [1, 2]}\n",
                           "aGVsbG8gd29ybGQh", "cHello world\nHow are you\n."})
    writer.text(text).bytes(text);
  writer.bytes(std::string(1000, '\0')).bytes(std::string("\x80\x03\x00\x00\x00\x01", 6));
  const auto scan = scan_of(writer.stop());
  EXPECT_EQ(globals_of(scan), Lines{});
  EXPECT_EQ(findings_of(scan), Lines{});
}

TEST(PickleScan, ListsDangerousGlobalsHoweverManyOthersThereAre) {
  const auto scan = scan_of(PickleWriter(2).repeat(150'000, "ca\nb\n0").raw(attack()));
  EXPECT_EQ(scan.globals.size(), 100'001u);
  EXPECT_EQ(scan.globals.back().module, "os");
  EXPECT_EQ(scan.findings.size(), 1u);
}

TEST(PickleScan, CutsNamesThatAreTooLongToRead) {
  const auto scan = scan_of(PickleWriter(2).global("os", std::string(100'000, 'x')).stop());
  ASSERT_EQ(scan.globals.size(), 1u);
  EXPECT_EQ(scan.globals[0].name.size(), 515u);
  EXPECT_EQ(scan.globals[0].verdict, Verdict::dangerous);
}

// Real attacks, from scanners' own test suites.

struct Expected {
  std::string file, member;
  std::vector<std::string> globals;  // "25 os.system"
};

std::vector<Expected> expected_globals() {
  const Json list = test::read_json(test::fixture_path("expected/_malicious_globals.json"));
  std::vector<Expected> all;
  for (const Json& entry : list.list()) {
    for (const Json& stream : entry.at("streams").list()) {
      Expected expected{entry.at("file").text(), stream.at("member").text(), {}};
      for (const Json& global : stream.at("globals").list()) {
        const std::string& name = global.at("name").text();
        if (name.starts_with("None.")) continue;  // the program that made the list gave up here
        expected.globals.push_back(fmt::format("{} {}", global.at("offset").count(), name));
      }
      all.push_back(std::move(expected));
    }
  }
  return all;
}

// The bytes that the list is about; null for archives that only lenient readers open.
SourcePtr source_of(const Expected& expected) {
  const std::string path = test::fixture_path(expected.file);
  if (expected.member.empty()) return file_source(path);
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, nullptr), zip_discard);
  zip_file_t* member = archive ? zip_fopen(archive.get(), expected.member.c_str(), 0) : nullptr;
  if (member == nullptr) return nullptr;
  std::string bytes;
  char part[4096];
  for (zip_int64_t size = 0; (size = zip_fread(member, part, sizeof part)) > 0;)
    bytes.append(part, static_cast<std::size_t>(size));
  zip_fclose(member);
  return test::source_of(bytes);
}

// A NumPy file with objects in it is a pickle behind a header.
std::uint64_t beginning_of(const SourcePtr& source) {
  std::byte head[10] = {};
  if (source->size_bytes() < sizeof head) return 0;
  source->read(0, head);
  const bool is_npy = head[0] == std::byte{0x93} && head[1] == std::byte{'N'};
  return is_npy ? 10 + std::to_integer<std::uint64_t>(head[8]) + (std::to_integer<std::uint64_t>(head[9]) << 8) : 0;
}

TEST(PickleScan, NamesTheGlobalsOfRealAttacksAtTheirBytes) {
  SKIP_WITHOUT_FIXTURES("malicious");
  std::size_t compared = 0;
  for (const Expected& expected : expected_globals()) {
    SCOPED_TRACE(expected.file + "!" + expected.member);
    const auto source = source_of(expected);
    if (!source || expected.globals.empty()) continue;
    const auto scan = scan_of(source, beginning_of(source));
    std::vector<std::string> seen;
    bool dangerous = false;
    for (const Global& g : scan.globals) {
      if (g.member.empty()) seen.push_back(fmt::format("{} {}.{}", g.offset, g.module, g.name));
      dangerous = dangerous || g.verdict == Verdict::dangerous;
    }
    EXPECT_EQ(seen, expected.globals);
    // These files name only what anybody names; they do harm by how they use it, or none.
    const auto harmless = {"globalLaughs", "sleepy", "object_arrays"};
    const bool is_harmless = std::any_of(harmless.begin(), harmless.end(), [&](const char* part) {
      return expected.file.find(part) != std::string::npos;
    });
    EXPECT_EQ(dangerous, !is_harmless);
    ++compared;
  }
  EXPECT_GE(compared, 60u);
}

TEST(PickleScan, NamesWhatIsHiddenInRealAttacks) {
  SKIP_WITHOUT_FIXTURES("malicious");
  const auto scan = [](const char* name) {
    return globals_of(
        scan_of(file_source(test::fixture_path(fmt::format("malicious/modelaudit__samples__pickles__{}.pkl", name)))));
  };
  EXPECT_EQ(scan("nested_pickle_raw"), Lines{"@74:30 builtins.print"});
  EXPECT_EQ(scan("nested_pickle_hex"), Lines{"@56:30 builtins.print"});
  EXPECT_EQ(scan("decode_exec_chain"), Lines{"@145:30 builtins.print"});
  EXPECT_EQ(scan("nested_pickle_multistage"), (Lines{"@69@24:30 builtins.print", "@190@24:30 builtins.print"}));
  EXPECT_EQ(scan("simple_nested"), Lines{});
}

TEST(PickleScan, ReportsImportedObjectsThatAreChanged) {
  SKIP_WITHOUT_FIXTURES("malicious");
  const auto scan =
      scan_of(file_source(test::fixture_path("malicious/picklescan__data__sys_module_override_sploit.pkl")));
  const auto findings = findings_of(scan);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0], ":128 calls what it has computed, whatever that is");
  EXPECT_EQ(findings[1], ":72 BUILD changes a global");
  EXPECT_TRUE(findings[3].starts_with(":98 STACK_GLOBAL needs a module and a name, both short text")) << findings[3];
  EXPECT_EQ(scan.findings[3].verdict, Verdict::dangerous);
}

TEST(PickleScan, CallsNothingDangerousThatIsHarmless) {
  SKIP_WITHOUT_FIXTURES("malicious/control-benign");
  for (const auto& path : test::fixture_files("malicious/control-benign", ".pkl")) {
    const auto scan = scan_of(file_source(path.string()));
    EXPECT_TRUE(scan.globals.empty()) << path;
    EXPECT_TRUE(scan.findings.empty()) << path << findings_of(scan).front();
  }
}

// Python makes the objects before the error, and those after it too.
TEST(PickleScan, LooksAtOldPicklesInStringsThatEndBadly) {
  const char* const kBad[] = {"ccollections\nCounter\n}b0cos\nsystem\n(S'id'\ntR.", "cos\nsystem\n(S'id'\ntR",
                              "(S'id'\nios\nsystem\n\xff"};
  for (const char* inner : kBad) {
    SCOPED_TRACE(inner);
    const Scan scan = scan_of(PickleWriter(4).bytes(inner).stop().bytes());
    EXPECT_TRUE(std::ranges::any_of(scan.globals, [](const Global& g) { return g.verdict == Verdict::dangerous; }));
  }
}

TEST(PickleScan, TakesTextThatLooksLikeAPickleForText) {
  EXPECT_TRUE(scan_of(PickleWriter(4).bytes("cos\nsystem\n").stop().bytes()).globals.empty());
}

TEST(PickleScan, HandsOverFilesThatItFindsInStrings) {
  const pickle::FileTest is_file = [](std::span<const std::byte> first) {
    return std::string_view(reinterpret_cast<const char*>(first.data()), first.size()).starts_with("PK\x03\x04");
  };
  const std::string latin1 = "PK\x03\x04\xC2\x80\xC3\xBF", zip = "PK\x03\x04\x80\xFF";  // as text and as bytes
  const std::string far = zip + std::string(100'000, 'x');
  const std::string inner = PickleWriter(4).bytes(zip).stop().bytes();
  const std::string bytes =
      PickleWriter(4).bytes(zip).text(latin1).bytes(far).text(base64(zip)).bytes(inner).stop().bytes();
  const auto source = test::source_of(bytes);
  Scan scan;
  pickle::scan_pickles(source, 0, source->size_bytes(), "m", {}, scan, is_file);
  std::vector<std::uint64_t> sizes, depths;
  for (const pickle::HiddenFile& file : scan.files) {
    EXPECT_TRUE(file.member.starts_with("m@"));
    sizes.push_back(file.source->size_bytes());
    depths.push_back(file.depth);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{zip.size(), zip.size(), far.size(), zip.size(), zip.size()}));
  EXPECT_EQ(depths, (std::vector<std::uint64_t>{1, 1, 1, 1, 2}));
}

}  // namespace
}  // namespace ballast
