// Values and keys as Python would show them, and never longer than anybody would read.
#include <gtest/gtest.h>

#include "builders/torch_file.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/torch/python_text.hpp"

namespace ballast::torch {
namespace {

namespace py = test::py;
using py::integer;
using py::Ops;

struct Run {
  explicit Run(const Ops& object) : graph(test::source_of(py::pickle(object))) {
    root = pickle::run(graph, 0, graph.source()->size_bytes(), Limits{}).root;
  }
  pickle::Graph graph;
  pickle::NodeId root;
};

std::string repr(const Ops& object, std::size_t most = 200) {
  const Run run(object);
  return python_repr(run.graph, run.root, most);
}
std::string key(const Ops& object) {
  const Run run(object);
  return key_text(run.graph, run.root);
}
PlainValue value(const Ops& object) {
  const Run run(object);
  return plain_value(run.graph, run.root);
}

TEST(PythonText, ShowsAsACallWhatHasNoShorterForm) {
  const std::string large(pickle::kNearBytes + 1, '1');
  EXPECT_EQ(repr(py::call("decimal", "Decimal", {})), "decimal.Decimal()");
  EXPECT_NE(repr(py::call("decimal", "Decimal", {py::text(large)})), "Decimal('')");
  EXPECT_EQ(repr(py::call("torch", "device", {})), "torch.device()");
  EXPECT_EQ(repr(py::call("fractions", "Fraction", {})), "fractions.Fraction()");
  EXPECT_EQ(repr(py::call("datetime", "date", {})), "datetime.date()");
  EXPECT_EQ(repr(py::call("builtins", "complex", {py::real(1)})), "complex(1.0)");
  EXPECT_EQ(repr(py::call("builtins", "complex", {py::real(1), py::text("a")})), "complex(1.0, 'a')");
}

TEST(PythonText, ShowsValuesAsPythonDoes) {
  EXPECT_EQ(repr(py::none()), "None");
  EXPECT_EQ(repr(py::boolean(false)), "False");
  EXPECT_EQ(repr(integer(-5)), "-5");
  EXPECT_EQ(repr(py::real(1)), "1.0");
  EXPECT_EQ(repr(py::real(1e-3)), "0.001");
  EXPECT_EQ(repr(py::real(1e300)), "1e+300");
  EXPECT_EQ(repr(py::real(INFINITY)), "inf");
  EXPECT_EQ(repr(py::real(-INFINITY)), "-inf");
  EXPECT_EQ(repr(py::real(NAN)), "nan");
  EXPECT_EQ(repr(py::text("it's")), "\"it's\"");
  EXPECT_EQ(repr(py::text("'\"")), "'\\'\"'");
  EXPECT_EQ(repr(py::text("a\nb\t\\\x01")), "'a\\nb\\t\\\\\\x01'");
  EXPECT_EQ(repr(py::bytes(std::string("\0a\xff", 3))), "b'\\x00a\\xff'");
  EXPECT_EQ(repr(py::tuple({integer(1)})), "(1,)");
  EXPECT_EQ(repr(py::tuple({})), "()");
  EXPECT_EQ(repr(py::list({integer(1), py::text("a")})), "[1, 'a']");
  EXPECT_EQ(repr(py::dict({{"a", integer(1)}, {"b", py::list({})}})), "{'a': 1, 'b': []}");
  EXPECT_EQ(repr(py::global("os", "system")), "os.system");
  EXPECT_EQ(repr(py::call("my", "f", {integer(1)})), "my.f(1)");
  EXPECT_EQ(repr(py::call("__builtin__", "complex", {integer(1), integer(2)})), "(1+2j)");
}

// The expected texts are those of repr() in Python 3.11, for the same pickles.
TEST(PythonText, ShowsObjectsThatStandForAValueAsPythonDoes) {
  const auto of = [](std::string_view name, const std::vector<Ops>& arguments) {
    return repr(py::call("__builtin__", name, arguments));
  };
  const auto encoded = [](std::string_view text) {
    return py::call("_codecs", "encode", {py::text(text), py::text("latin1")});
  };
  EXPECT_EQ(of("frozenset", {py::list({integer(1)})}), "frozenset({1})");
  EXPECT_EQ(of("frozenset", {py::tuple({integer(1), py::text("a")})}), "frozenset({1, 'a'})");
  EXPECT_EQ(of("frozenset", {}), "frozenset()");
  EXPECT_EQ(of("frozenset", {py::list({})}), "frozenset()");
  EXPECT_EQ(of("set", {py::list({integer(1)})}), "{1}");
  EXPECT_EQ(of("set", {}), "set()");
  EXPECT_EQ(repr("(" + integer(1) + "\x91"), "frozenset({1})");
  EXPECT_EQ(repr("(\x91"), "frozenset()");
  EXPECT_EQ(repr("\x8f"), "set()");
  EXPECT_EQ(repr(py::tuple({py::call("builtins", "frozenset", {}), py::tuple({})})), "(frozenset(), ())");
  EXPECT_EQ(of("complex", {py::real(0), py::real(2)}), "2j");
  EXPECT_EQ(of("complex", {py::real(-0.0), py::real(2)}), "(-0+2j)");
  EXPECT_EQ(of("complex", {py::real(1.5), py::real(-2)}), "(1.5-2j)");
  EXPECT_EQ(of("complex", {py::real(NAN), py::real(INFINITY)}), "(nan+infj)");
  EXPECT_EQ(of("range", {integer(0), integer(3), integer(1)}), "range(0, 3)");
  EXPECT_EQ(of("xrange", {integer(0), integer(3), integer(2)}), "range(0, 3, 2)");
  EXPECT_EQ(of("slice", {integer(1), py::none(), py::none()}), "slice(1, None, None)");
  EXPECT_EQ(of("bytes", {}), "b''");
  EXPECT_EQ(of("bytearray", {encoded("\xc3\xbf")}), "bytearray(b'\\xff')");
  EXPECT_EQ(repr(encoded("a")), "b'a'");
  EXPECT_EQ(of("type", {py::none()}), "<class 'NoneType'>");
  EXPECT_EQ(repr(py::global("__builtin__", "Ellipsis")), "Ellipsis");
  EXPECT_EQ(repr(py::global("builtins", "NotImplemented")), "NotImplemented");
  EXPECT_EQ(repr(py::global("__builtin__", "unicode")), "<class 'str'>");
  EXPECT_EQ(repr(py::global("torch", "float16")), "torch.float16");
  EXPECT_EQ(repr(py::call("torch", "Size", {py::integers({2, 3})})), "torch.Size([2, 3])");
  EXPECT_EQ(repr(py::call("torch", "device", {py::text("cuda"), integer(1)})), "device(type='cuda', index=1)");
  EXPECT_EQ(repr(py::call("torch", "device", {py::text("cpu")})), "device(type='cpu')");
  EXPECT_EQ(repr(py::call("pathlib", "PosixPath", {py::text("/"), py::text("a"), py::text("b")})), "PosixPath('/a/b')");
  EXPECT_EQ(repr(py::call("decimal", "Decimal", {py::text("1.50")})), "Decimal('1.50')");
  EXPECT_EQ(repr(py::call("fractions", "Fraction", {py::text("1/2")})), "Fraction(1, 2)");
  EXPECT_EQ(repr(py::call("datetime", "date", {py::bytes("\x07\xe4\x02\x1d")})), "datetime.date(2020, 2, 29)");
  EXPECT_EQ(repr(py::call("datetime", "timedelta", {integer(1), integer(0), integer(5)})),
            "datetime.timedelta(days=1, microseconds=5)");
}

// A call with anything else inside is shown as a call.
TEST(PythonText, ShowsCallsThatMakeNoSenseAsCalls) {
  EXPECT_EQ(repr(py::call("builtins", "complex", {py::text("x")})), "complex('x')");
  EXPECT_EQ(repr(py::call("builtins", "range", {py::none(), integer(1)})), "range(None, 1)");
  EXPECT_EQ(repr(py::call("builtins", "set", {integer(1)})), "set(1)");
  EXPECT_EQ(repr(py::call("datetime", "date", {py::bytes("x")})), "datetime.date(b'x')");
  EXPECT_EQ(repr(py::call("torch", "Size", {py::list({py::text("a")})})), "torch.Size(['a'])");
  EXPECT_EQ(repr(py::call("pathlib", "PosixPath", {integer(1)})), "pathlib.PosixPath(1)");
}

TEST(PythonText, IsCutAfterSomeWords) {
  const std::string text = repr(py::text(std::string(1000, 'x')), 50);
  EXPECT_LT(text.size(), 60u);
  EXPECT_TRUE(text.ends_with("…"));
  const std::string many = repr(py::list(std::vector<Ops>(1000, integer(7))), 50);
  EXPECT_LT(many.size(), 70u);
  EXPECT_TRUE(many.ends_with("…]"));
}

TEST(PythonText, DoesNotFollowAnObjectThatContainsItself) {
  EXPECT_EQ(repr("]q\x01h\x01"
                 "a")
                    .find("…") != std::string::npos,
            true);
  Ops deep = integer(1);
  for (int i = 0; i < 100; ++i) deep = py::list({deep});
  EXPECT_NE(repr(deep).find("…"), std::string::npos);
}

TEST(PythonText, TakesTextKeysAsTheyAre) {
  EXPECT_EQ(key(py::text("a.b")), "a.b");
  EXPECT_EQ(key(py::text("")), "");
  EXPECT_EQ(key(integer(0)), "0");
  EXPECT_EQ(key(py::call("_codecs", "encode", {py::text("\xc3\xa9"), py::text("latin1")})), "b'\\xe9'");
}

TEST(PythonText, ReadsNumpyScalarsAndTypes) {
  const auto dtype = [](const char* code, const char* order) {
    return py::build(py::call("numpy", "dtype", {py::text(code), py::boolean(false), py::boolean(true)}),
                     py::tuple({integer(3), py::text(order), py::none(), py::none(), py::none()}));
  };
  const auto scalar = [&](const char* code, const char* order, const std::string& data) {
    return value(py::call("numpy.core.multiarray", "scalar", {dtype(code, order), py::bytes(data)}));
  };
  EXPECT_EQ(std::get<std::string>(scalar("f8", "<", test::raw<double>({0.25})).value), "0.25");
  EXPECT_EQ(std::get<std::string>(scalar("i2", ">", std::string("\x01\x00", 2)).value), "256");
  EXPECT_EQ(std::get<std::string>(scalar("b1", "|", std::string("\x01", 1)).value), "True");
  EXPECT_EQ(std::get<std::string>(scalar("u1", "|", std::string("\xff", 1)).value), "255");
  EXPECT_EQ(scalar("f8", "<", test::raw<double>({0.25})).type, "numpy <f8");
  EXPECT_EQ(std::get<std::string>(value(dtype("f4", "<")).value), "dtype(<f4)");
}

TEST(PythonText, NamesTypesAsPythonThreeDoes) {
  EXPECT_EQ(value(integer(1)).type, "int");
  EXPECT_EQ(value(py::text("a")).type, "str");
  EXPECT_EQ(value(py::call("__builtin__", "set", {py::list({})})).type, "set");
  EXPECT_EQ(value(py::call("my.module", "Thing", {})).type, "my.module.Thing");
  EXPECT_EQ(value(py::call("_codecs", "encode", {py::text("a"), py::text("latin1")})).type, "bytes");
}

}  // namespace
}  // namespace ballast::torch
