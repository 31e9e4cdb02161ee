// Every instruction, and every way a pickle can lie, one row each.
#include "formats/pickle/machine.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "builders/pickle_writer.hpp"
#include "pickle/render.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using namespace std::string_view_literals;
using pickle::Graph;
using pickle::Kind;
using test::PickleWriter;

std::string rendering_of(std::string_view bytes, const Limits& limits = {}) {
  Graph graph(test::source_of(bytes));
  const auto pickle = pickle::run(graph, 0, bytes.size(), limits);
  EXPECT_EQ(pickle.end, bytes.size());
  return test::render(graph, pickle.root);
}

struct Good {
  std::string_view bytes;
  std::string_view rendering;
};

// These are in the order of Python's list of opcodes. text(61) is "a".
constexpr Good kGood[] = {
    {"(t."sv, "()"},
    {"(K\1K\2"
     "0t."sv,
     "(1)"},
    {"K\1(0."sv, "1"},  // POP takes a mark that is on top
    {"K\1(K\2K\3"
     "1."sv,
     "1"},
    {"]2\x86."sv, "(#0[],#0)"},
    {"F1.5\n."sv, "real(3ff8000000000000)"},
    {"F-0\n."sv, "real(8000000000000000)"},
    {"F1e999\n."sv, "real(7ff0000000000000)"},
    {"F-1e999999999999999999999\n."sv, "real(fff0000000000000)"},
    {"F1e-999\n."sv, "real(0000000000000000)"},
    {"F0.00000000000000000001e-310\n."sv, "real(0000000000000000)"},
    {"F-inf\n."sv, "real(fff0000000000000)"},
    {"Fnan\n."sv, "real(nan)"},
    {"F+2\n."sv, "real(4000000000000000)"},
    {"F2\0junk\n."sv, "real(4000000000000000)"},  // CPython reads a C string
    {"I00\n."sv, "False"},
    {"I01\n."sv, "True"},
    {"I0\n."sv, "0"},
    {"I-12\n."sv, "-12"},
    {"I0x1F\n."sv, "31"},
    {"I017\n."sv, "15"},
    {"I 1_000 \n."sv, "1000"},
    {"I9223372036854775807\n."sv, "9223372036854775807"},
    {"I9223372036854775808\n."sv, "9223372036854775808"},
    {"J\xff\xff\xff\xff."sv, "-1"},
    {"J\0\0\0\x80."sv, "-2147483648"},
    {"K\xff."sv, "255"},
    {"L12L\n."sv, "12"},
    {"L-123456789012345678901234567890L\n."sv, "-123456789012345678901234567890"},
    {"L5\n."sv, "5"},
    {"M\xff\xff."sv, "65535"},
    {"N."sv, "None"},
    {"Pid 7\n."sv, "<text(69642037)>"},
    {"K\1Q."sv, "<1>"},
    {"cm\nn\n)R."sv, "#0reduce(m.n,())"},
    {"S'a\\'\\\\\\n\\x41\\101\\q'\n."sv, "text(61275c0a41415c71)"},
    {"S\"\\xff\"\n."sv, "bytes(ff)"},
    {"S'a' \r\n."sv, "text(61)"},
    {"T\1\0\0\0a."sv, "text(61)"},
    {"T\1\0\0\0\xff."sv, "bytes(ff)"},
    {"T\0\0\0\0."sv, "text()"},
    {"U\1a."sv, "text(61)"},
    {"Va\\u00e9\\U0001f600\\\\u0041\xe9\\n\n."sv, "text(61c3a9f09f98805c5c7530303431c3a95c6e)"},
    {"V\\ud800\n."sv, "text(eda080)"},
    {"V\\U0010ffff\n."sv, "text(f48fbfbf)"},
    {"S''\n."sv, "text()"},
    {"X\2\0\0\0\xc3\xa9."sv, "text(c3a9)"},
    {"X\3\0\0\0\xed\xa0\x80."sv, "text(eda080)"},
    {"X\3\0\0\0\xed\xbf\xbf."sv, "text(edbfbf)"},
    {"]K\1a."sv, "#0[1]"},
    {"cm\nn\n)RK\1a."sv, "#0reduce(m.n,())[1]"},
    {"cm\nn\n)R}b."sv, "#0reduce(m.n,())|#1{}"},
    {"cm\nn\n)RK\1bK\2b."sv, "#0reduce(m.n,())|2"},
    {"]Nb."sv, "#0[]"},  // Python's __setstate__ with None
    {"cm\r\nn.o\r\n."sv, "m\r.n.o\r"},
    {"(K\1K\2d."sv, "#0{1:2}"},
    {"}."sv, "#0{}"},
    {"](K\1K\2e."sv, "#0[1,2]"},
    {"K\1(e."sv, "1"},  // nothing appended to anything
    {"Np3\n0g3\n."sv, "None"},
    {"Nq\3\x30h\3."sv, "None"},
    {"(K\1im\nn\n."sv, "#0inst(m.n,(1))"},
    {"Nr\0\0\0\xff\x30j\0\0\0\xff."sv, "None"},
    {"(K\1l."sv, "#0[1]"},
    {"]."sv, "#0[]"},
    {"(cm\nn\nK\1o."sv, "#0obj(m.n,(1))"},
    {"}K\1K\2s."sv, "#0{1:2}"},
    {"cm\nn\n)RK\1K\2s."sv, "#0reduce(m.n,()){1:2}"},
    {"(K\1(K\2tt."sv, "(1,(2))"},
    {")."sv, "()"},
    {"}(K\1K\2K\3K\4u."sv, "#0{1:2,3:4}"},
    {"G\x3f\xf0\0\0\0\0\0\0."sv, "real(3ff0000000000000)"},
    {"\x80\2N."sv, "None"},
    {"N\x80\5."sv, "None"},  // PROTO may be anywhere
    {"cm\nn\n)\x81."sv, "#0newobj(m.n,())"},
    {"K\1\x85."sv, "(1)"},
    {"K\1K\2\x86."sv, "(1,2)"},
    {"K\1K\2K\3\x87."sv, "(1,2,3)"},
    {"\x88."sv, "True"},
    {"\x89."sv, "False"},
    {"\x8a\0."sv, "0"},
    {"\x8a\1\xff."sv, "-1"},
    {"\x8a\x08\0\0\0\0\0\0\0\x80."sv, "-9223372036854775808"},
    {"\x8a\x09\0\0\0\0\0\0\0\x80\0."sv, "9223372036854775808"},
    {"\x8a\x09\0\0\0\0\0\0\0\x80\xff."sv, "-9223372036854775808"},
    {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff."sv, "-9223372036854775809"},
    {"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv, "119547037146038801333356"},  // torch's magic number
    {"\x8b\2\0\0\0\0\1."sv, "256"},
    {"B\1\0\0\0\xff."sv, "bytes(ff)"},
    {"C\1\xff."sv, "bytes(ff)"},
    {"\x8c\1a."sv, "text(61)"},
    {"\x8d\1\0\0\0\0\0\0\0a."sv, "text(61)"},
    {"\x8e\1\0\0\0\0\0\0\0\xff."sv, "bytes(ff)"},
    {"\x8f."sv, "#0set()"},
    {"\x8f(K\1K\2\x90."sv, "#0set(1,2)"},
    {"cm\nn\n)R(K\1\x90."sv, "#0reduce(m.n,())[1]"},
    {"(K\1\x91."sv, "frozenset(1)"},
    {"cm\nn\n)}\x92."sv, "#0newobj_ex(m.n,())+#1{}"},
    {"\x8c\1m\x8c\1n\x93."sv, "m.n"},
    {"N\x94]\x94h\1."sv, "#0[]"},
    {"\x95\2\0\0\0\0\0\0\0N."sv, "None"},
    {"\x95\1\0\0\0\0\0\0\0N."sv, "None"},  // the end of a frame does not matter
    {"\x96\1\0\0\0\0\0\0\0\xff."sv, "bytearray(ff)"},
};

TEST(PickleMachine, KnowsEveryInstruction) {
  for (const auto& [bytes, rendering] : kGood) {
    SCOPED_TRACE(testing::PrintToString(bytes));
    EXPECT_EQ(rendering_of(bytes), rendering);
  }
}

struct Bad {
  std::string_view bytes;
  Errc code;
  std::string_view message;
  std::uint64_t byte;
};

constexpr Bad kBad[] = {
    {""sv, Errc::malformed, "the pickle ends without STOP", 0},
    {"N"sv, Errc::malformed, "the pickle ends without STOP", 1},
    {"."sv, Errc::malformed, "STOP finds nothing on the stack", 0},
    {"N(."sv, Errc::malformed, "STOP finds nothing on the stack", 2},
    {"\0"sv, Errc::malformed, "0x00 is no pickle instruction", 0},
    {"N\xff"sv, Errc::malformed, "0xff is no pickle instruction", 1},
    {"\x80\6N."sv, Errc::unsupported, "protocol 6", 0},
    {"\x95\3\0\0\0\0\0\0\0N."sv, Errc::malformed, "FRAME says that 3 bytes follow, where 2 do", 0},
    {"\x95\xff\xff\xff\xff\xff\xff\xff\xffN."sv, Errc::malformed, "FRAME says", 0},
    {"\x82\1"sv, Errc::unsupported, "EXT1 names a global by a number", 0},
    {"\x83\1\1"sv, Errc::unsupported, "EXT2", 0},
    {"\x84\1\1\1\1"sv, Errc::unsupported, "EXT4", 0},
    {"\x97"sv, Errc::unsupported, "NEXT_BUFFER takes bytes from outside the file", 0},
    {"N\x98"sv, Errc::unsupported, "READONLY_BUFFER", 1},

    // More bytes than there are
    {"J\0\0"sv, Errc::malformed, "ends inside BININT: 4 more bytes are needed, 2 follow", 1},
    {"X\xff\xff\xff\xff"sv, Errc::malformed, "ends inside BINUNICODE: 4294967295 more bytes", 5},
    {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"sv, Errc::malformed, "ends inside BINUNICODE8", 9},
    {"\x8e\0\0\0\0\0\0\0\x80"sv, Errc::malformed, "ends inside BINBYTES8", 9},
    {"\x96\xff\xff\xff\xff\xff\xff\xff\x7f"sv, Errc::malformed, "ends inside BYTEARRAY8", 9},
    {"B\2\0\0\0a"sv, Errc::malformed, "ends inside BINBYTES: 2 more bytes are needed, 1 follow", 5},
    {"T\xff\xff\xff\xff"sv, Errc::malformed, "BINSTRING has the length -1", 0},
    {"\x8b\0\0\0\x80"sv, Errc::malformed, "LONG4 has the length -2147483648", 0},
    {"\x8b\xff\xff\xff\x7f"sv, Errc::malformed, "ends inside LONG4", 5},
    {"\x8a\2\1"sv, Errc::malformed, "ends inside LONG1", 2},
    {"cos\nsystem"sv, Errc::malformed, "ends inside a global's name", 10},
    {"I1"sv, Errc::malformed, "ends inside INT", 2},

    // Less on the stack than needed
    {"0"sv, Errc::malformed, "POP needs 1 values, the stack holds 0", 0},
    {"1"sv, Errc::malformed, "POP_MARK finds no MARK", 0},
    {"2"sv, Errc::malformed, "DUP needs 1", 0},
    {"N(2"sv, Errc::malformed, "DUP needs 1", 2},
    {"N\x86"sv, Errc::malformed, "TUPLE2 needs 2 values, the stack holds 1", 1},
    {"t"sv, Errc::malformed, "TUPLE finds no MARK", 0},
    {"Na"sv, Errc::malformed, "APPEND needs 2", 1},
    {"(Ne"sv, Errc::malformed, "APPENDS finds nothing below the MARK", 2},
    {"((K\1K\2u"sv, Errc::malformed, "SETITEMS finds nothing below the MARK", 6},
    {"}K\1s"sv, Errc::malformed, "SETITEM needs 3", 3},
    {"R"sv, Errc::malformed, "REDUCE needs 2", 0},
    {"b"sv, Errc::malformed, "BUILD needs 2", 0},
    {"cm\nn\n)\x92"sv, Errc::malformed, "NEWOBJ_EX needs 3 values, the stack holds 2", 6},
    {"(o"sv, Errc::malformed, "OBJ finds no class above the MARK", 1},
    {"im\nn\n"sv, Errc::malformed, "INST finds no MARK", 0},
    {"Q"sv, Errc::malformed, "BINPERSID needs 1", 0},
    {"\x94"sv, Errc::malformed, "MEMOIZE needs 1", 0},
    {"q\1"sv, Errc::malformed, "BINPUT needs 1", 0},
    {"\x8c\1m\x93"sv, Errc::malformed, "STACK_GLOBAL needs 2", 3},

    // Values of the wrong kind
    {"NK\1a"sv, Errc::malformed, "APPEND changes None", 3},
    {")K\1a"sv, Errc::malformed, "APPEND changes a tuple", 3},
    {"cm\nn\nK\1K\2s"sv, Errc::malformed, "SETITEM changes a global", 9},
    {"NQ(K\1K\2u"sv, Errc::malformed, "SETITEMS changes what an id stands for", 7},
    {"cm\nn\n}b"sv, Errc::malformed, "BUILD changes a global", 6},
    {"](K\1\x90"sv, Errc::malformed, "ADDITEMS changes a list", 4},
    {"\x8f(K\1e"sv, Errc::malformed, "APPENDS changes a set", 4},
    {"(K\1d"sv, Errc::malformed, "DICT finds a key without a value", 3},
    {"}(K\1u"sv, Errc::malformed, "SETITEMS finds a key without a value", 4},
    {"cm\nn\n]R"sv, Errc::malformed, "REDUCE needs a tuple of arguments", 6},
    {"cm\nn\n))\x92"sv, Errc::malformed, "NEWOBJ_EX needs a tuple of arguments, and a dict", 7},
    {"K\1\x8c\1n\x93"sv, Errc::malformed,
     "STACK_GLOBAL needs a module and a name, both short text, and finds an integer", 5},
    {"\x8c\1mK\1\x93"sv, Errc::malformed, "both short text, and finds text and an integer", 5},
    {"X\1\0\0\0\xff"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"X\2\0\0\0\xed\xa0"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"X\3\0\0\0\xed\xa0\x7f"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"X\3\0\0\0\xed\xa0\xc0"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"X\3\0\0\0\xed\xc0\x80"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"X\3\0\0\0\xf5\xa0\x80"sv, Errc::malformed, "BINUNICODE holds text that is not UTF-8", 0},
    {"h\1"sv, Errc::malformed, "BINGET finds nothing under 1 in the memo", 0},
    {"g18446744073709551616\n"sv, Errc::malformed, "GET has no index", 0},
    {"Np-1\n"sv, Errc::malformed, "PUT has no index", 1},

    // Words that are not numbers
    {"Iabc\n"sv, Errc::malformed, "INT cannot read the integer \"abc\"", 0},
    {"I\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"I1__0\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"LL\n"sv, Errc::malformed, "LONG cannot read the integer", 0},
    {"F1.5x\n"sv, Errc::malformed, "FLOAT cannot read the float \"1.5x\"", 0},
    {"F\n"sv, Errc::malformed, "FLOAT cannot read the float", 0},
    {"I+-1\n"sv, Errc::malformed, "INT cannot read the integer \"+-1\"", 0},
    {"L+-1L\n"sv, Errc::malformed, "LONG cannot read the integer \"+-1\"", 0},
    {"F+-1\n"sv, Errc::malformed, "FLOAT cannot read the float \"+-1\"", 0},
    {"F++1\n"sv, Errc::malformed, "FLOAT cannot read the float \"++1\"", 0},
    {"F+\n"sv, Errc::malformed, "FLOAT cannot read the float", 0},
    {"Fnan(1)\n"sv, Errc::malformed, "FLOAT cannot read the float \"nan(1)\"", 0},
    {"I1_\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"I08\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"I0x1G\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"I0x8000000000000000\n"sv, Errc::malformed, "INT cannot read the integer", 0},
    {"Sabc\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"S'abc\"\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"S'\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"S'\\x4'\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"S'\\x4g'\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"S'a\\'\n"sv, Errc::malformed, "STRING holds no string in quotes", 0},
    {"V\\u12\n"sv, Errc::malformed, "UNICODE has a broken \\u escape", 0},
    {"V\\U00110000\n"sv, Errc::malformed, "UNICODE has a broken \\u escape", 0},
};

TEST(PickleMachine, RefusesWithTheByte) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(testing::PrintToString(bad.bytes));
    EXPECT_ERROR_AT(rendering_of(bad.bytes), bad.code, bad.message, bad.byte);
  }
}

TEST(PickleMachine, StopsBeforeTheLastByteThatItIsGiven) {
  const auto source = PickleWriter(2).text("abc").stop().source();
  for (std::uint64_t last = 0; last < source->size_bytes(); ++last) {
    Graph graph(source);
    EXPECT_ERROR(pickle::run(graph, 0, last, Limits{}), Errc::malformed, "the pickle ends ");
  }
}

TEST(PickleMachine, RunsSeveralPicklesOfOneSource) {
  const auto source = PickleWriter().text("a").put(0).stop().raw("junk").integer(7).stop().source();
  Graph graph(source);
  const auto first = pickle::run(graph, 0, source->size_bytes(), Limits{});
  const auto second = pickle::run(graph, first.end + 4, source->size_bytes(), Limits{});
  EXPECT_EQ(second.end, source->size_bytes());
  EXPECT_EQ(graph.chars(first.root), "a");
  EXPECT_EQ(graph[second.root].integer, 7);
}

TEST(PickleMachine, KeepsTheGlobalsBeforeTheBreak) {
  const auto source = PickleWriter(2).global("os", "system").stack_global("a", "b").raw("\xff").source();
  Graph graph(source);
  EXPECT_ERROR(pickle::run(graph, 0, source->size_bytes(), Limits{}), Errc::malformed, "0xff");
  ASSERT_EQ(graph.globals().size(), 2u);
  EXPECT_EQ(graph.globals()[0].module, "os");
  EXPECT_EQ(graph.globals()[0].offset, 2u);
  EXPECT_EQ(graph.globals()[1].name, "b");
}

TEST(PickleMachine, KnowsPython2sModulesByTheirNewNames) {
  const auto source = PickleWriter(2).global("__builtin__", "set").stop().source();
  Graph graph(source);
  const auto root = pickle::run(graph, 0, source->size_bytes(), Limits{}).root;
  EXPECT_TRUE(graph.is_global(root, "builtins", "set"));
  EXPECT_TRUE(graph.is_global(root, "__builtin__", "set"));
  EXPECT_FALSE(graph.is_global(root, "builtins", "list"));
}

// Strings of a checkpoint that may have gigabytes are not read, and neither are the bytes between them.
TEST(PickleMachine, LeavesLargeStringsInTheFile) {
  const std::string large(pickle::kNearBytes + 1, 'x'), fits(pickle::kNearBytes, 'y');
  const auto source = PickleWriter(2).mark().bytes(large).text(large).text(fits).tuple().stop().source();
  Graph graph(source);
  const auto root = pickle::run(graph, 0, source->size_bytes(), Limits{}).root;
  const auto items = graph.item_list(root);
  ASSERT_EQ(items.size(), 3u);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(graph[items[i]].is_far);
    EXPECT_EQ(graph.chars(items[i]), "");
    EXPECT_EQ(graph.length(items[i]), large.size());
    EXPECT_EQ(graph.read_chars(items[i]), large);
  }
  EXPECT_EQ(graph[items[0]].offset, 8u);
  EXPECT_EQ(graph.chars(items[2]), fits);
}

TEST(PickleMachine, TakesNoLargeStringForAName) {
  const std::string large(pickle::kNearBytes + 1, 'x');
  EXPECT_ERROR(rendering_of(PickleWriter(4).stack_global("m", large).stop()), Errc::malformed, "both short text");
  EXPECT_ERROR(rendering_of(PickleWriter(4).stack_global(large, "n").stop()), Errc::malformed, "both short text");
}

TEST(PickleMachine, ReadsLinesThatAreLongerThanItsWindow) {
  const std::string words(1 << 20, 'w');
  const auto source = PickleWriter().raw("V").raw(words).raw("\n.").source();
  Graph graph(source);
  const auto root = pickle::run(graph, 0, source->size_bytes(), Limits{}).root;
  EXPECT_EQ(graph.chars(root), words);
}

TEST(PickleMachine, ReadsIntegersUpToALimit) {
  const auto binary = [](std::size_t size) {
    return PickleWriter(2).op('\x8b').little_endian(size, 4).repeat(size, "\x7f").stop();
  };
  EXPECT_EQ(rendering_of(binary(1024)).size(), 2466u);
  EXPECT_ERROR(rendering_of(binary(1025)), Errc::limit, "LONG4 holds an integer of 1025 bytes");
  EXPECT_EQ(rendering_of(PickleWriter().raw("L").repeat(60000, "7").raw("L\n.")), std::string(60000, '7'));
  EXPECT_ERROR(rendering_of(PickleWriter().raw("L").repeat(70000, "7").raw("L\n.")), Errc::malformed, "LONG");
}

TEST(PickleMachine, KeepsToItsLimits) {
  Limits limits;
  limits.max_pickle_nodes = 100;
  EXPECT_NO_THROW(rendering_of(PickleWriter(2).mark().repeat(90, "N").tuple().stop(), limits));
  for (const char* instruction : {"N", "(", "]2", "](e", ")\x85"}) {
    SCOPED_TRACE(instruction);
    EXPECT_ERROR(rendering_of(PickleWriter(2).repeat(1000, instruction), limits), Errc::limit, "more than 100 objects");
  }
  EXPECT_ERROR(rendering_of(PickleWriter(2).empty_list().repeat(60, "(N2222e"), limits), Errc::limit, "objects");

  // One less than what is refused.
  for (const auto& [instruction, most] : {std::pair{"]0", 98}, {"N", 98}, {"(", 99}}) {
    SCOPED_TRACE(instruction);
    const auto repeated = [&](int count) {
      return PickleWriter().repeat(static_cast<std::size_t>(count), instruction).none().stop();
    };
    EXPECT_NO_THROW(rendering_of(repeated(most), limits));
    EXPECT_ERROR(rendering_of(repeated(most + 1), limits), Errc::limit, "more than 100 objects");
  }
  EXPECT_NO_THROW(rendering_of(PickleWriter(2).empty_list().repeat(59, "(N2222e").raw("(N22e").stop(), limits));
  EXPECT_ERROR(rendering_of(PickleWriter(2).empty_list().repeat(59, "(N2222e").raw("(N222e").stop(), limits),
               Errc::limit, "more than 100 objects");

  limits = {};
  limits.max_pickle_bytes = 100'000;
  EXPECT_NO_THROW(rendering_of(PickleWriter(2).bytes(std::string(200'000, 'x')).stop(), limits));
  EXPECT_ERROR(rendering_of(PickleWriter(2).repeat(200'000, "N0").stop(), limits), Errc::limit, "max_pickle_bytes");
}

TEST(PickleMachine, GoesOnBehindNonsenseIfItIsAskedTo) {
  const auto source = PickleWriter(4)
                          .integer(1)
                          .text("os")
                          .op('\x93')  // a module that is not text
                          .global("posix", "system")
                          .text("id")
                          .reduce()  // arguments that are not a tuple
                          .raw("h\x63")
                          .raw("e")  // nothing in the memo; no mark
                          .global("a", "b")
                          .stop()
                          .source();
  Graph graph(source);
  std::vector<Error> complaints;
  const auto pickle = pickle::run_leniently(graph, 0, source->size_bytes(), Limits{}, complaints);
  EXPECT_EQ(pickle.end, source->size_bytes());
  EXPECT_EQ(complaints.size(), 4u);
  EXPECT_EQ(graph.globals().size(), 2u);
  EXPECT_TRUE(graph.is_global(pickle.root, "a", "b"));
}

TEST(PickleMachine, DoesNotGoOnForEver) {
  const auto source = PickleWriter(2).repeat(1'000'000, "0").source();
  Graph graph(source);
  std::vector<Error> complaints;
  EXPECT_ERROR(pickle::run_leniently(graph, 0, source->size_bytes(), Limits{}, complaints), Errc::malformed, "POP");
  EXPECT_EQ(complaints.size(), 100u);
}

// Python sets items of anything: many such complaints must not hide the globals that follow.
TEST(PickleMachine, GoesOnHoweverOftenPythonWould) {
  const auto source =
      PickleWriter(2).global("sys", "modules").repeat(100'000, "NNs").global("os", "system").stop().source();
  Graph graph(source);
  std::vector<Error> complaints;
  const auto pickle = pickle::run_leniently(graph, 0, source->size_bytes(), Limits{}, complaints);
  EXPECT_TRUE(graph.is_global(pickle.root, "os", "system"));
  EXPECT_EQ(complaints.size(), 100u);
}

}  // namespace
}  // namespace ballast
