// The one judge: each use is judged by its name, its kind and its arguments, and the weakest of these verdicts counts.
#include "formats/pickle/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "builders/torch_file.hpp"
#include "formats/pickle/machine.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using pickle::Graph;
using pickle::Judgement;
using pickle::Judgements;

struct Seen {
  Verdict weakest = Verdict::known;
  std::string rule, use;
  std::size_t loaded = 0;
};

Seen judged(const py::Ops& object, const std::vector<std::string>& trusted = {}) {
  Graph graph(test::source_of(py::pickle(object, 4)));
  std::vector<Error> complaints;
  pickle::run_leniently(graph, 0, graph.source()->size_bytes(), {}, complaints);
  const Judgements judgements = pickle::judge(graph, trusted);
  Seen seen;
  seen.loaded = judgements.loaded.size();
  if (!judgements.nameless.empty() || !complaints.empty()) seen.weakest = Verdict::unknown;
  for (const Error& complaint : complaints) {
    if (complaint.code() == Errc::unsafe) seen.weakest = Verdict::dangerous;
  }
  for (const Judgement& one : judgements.globals) {
    if (one.verdict < seen.weakest || (one.verdict == seen.weakest && !seen.rule.empty())) continue;
    seen.weakest = one.verdict;
    seen.rule = std::string(pickle::name(one.rule));
    seen.use = std::string(pickle::name(one.use));
  }
  return seen;
}

void expect(Verdict verdict, const py::Ops& object, const std::string& what) {
  EXPECT_EQ(name(judged(object).weakest), name(verdict)) << what;
}

py::Ops built(const std::string& module, const std::string& name, const std::vector<py::Ops>& arguments = {}) {
  return py::global(module, name) + py::tuple(arguments) + "\x81";
}
py::Ops appended(const py::Ops& object, const py::Ops& item) { return object + item + "a"; }
py::Ops stored(const py::Ops& object, const py::Ops& key, const py::Ops& value) { return object + key + value + "s"; }
py::Ops latin1(const std::string& text) { return py::call("_codecs", "encode", {py::text(text), py::text("latin1")}); }
py::Ops loaded(const py::Ops& bytes) { return py::call("torch.storage", "_load_from_bytes", {bytes}); }
py::Ops byte_array(const std::string& bytes) {
  return std::string("\x96") + static_cast<char>(bytes.size()) + std::string(7, '\0') + bytes;
}

TEST(Judge, KnowsWhatIsOnTheAllowlistForThatUse) {
  expect(Verdict::known, py::ordered_dict({{"a", py::integer(1)}}), "a dict");
  expect(Verdict::known, py::build(built("torch.nn.modules.linear", "Linear"), py::dict({{"bias", py::none()}})),
         "a layer");
  expect(Verdict::known,
         py::call("copy_reg", "_reconstructor",
                  {py::global("torch.nn.modules.linear", "Linear"), py::global("__builtin__", "object"), py::none()}),
         "a layer of protocol 0");
  expect(Verdict::known, py::call("builtins", "bytearray", {py::text("a"), py::text("latin-1")}), "a bytearray");
  expect(Verdict::known, py::call("pathlib", "PosixPath", {py::text("a")}), "a path");
  expect(Verdict::known, built("torch.distributed.checkpoint.filesystem", "_StorageInfo"), "a record of DCP");
}

TEST(Judge, DoesNotKnowTheSameNamesForOtherUses) {
  expect(Verdict::unknown, py::call("torch.nn.modules.linear", "Linear", {py::integer(1)}), "a layer that is called");
  expect(Verdict::unknown, stored(built("torch.nn.modules.linear", "Linear"), py::text("a"), py::none()), "stored in");
  expect(Verdict::unknown, appended(py::ordered_dict(), py::integer(1)), "an OrderedDict that is appended to");
  expect(Verdict::unknown, py::call("torch.nn.modules.utils", "_pair", {py::integer(1)}),
         "a function among the layers");
  expect(Verdict::unknown, py::call("_codecs", "encode", {py::text("a"), py::text("utf-8")}), "another codec");
  expect(Verdict::unknown, py::call("builtins", "bytes", {py::list({py::integer(65)})}), "bytes of numbers");
  expect(Verdict::unknown, py::call("builtins", "str", {py::bytes("a"), py::text("utf-16")}), "text of bytes");
  expect(Verdict::unknown, py::call("builtins", "type", {py::text("A"), py::tuple({}), py::dict({})}), "a new class");
}

TEST(Judge, CallsUnknownNamesUnknownIfTheyAreCalledBuiltOrGivenAState) {
  EXPECT_EQ(judged(py::call("model", "make", {})).use, "called");
  EXPECT_EQ(judged(built("model", "Net")).use, "built");
  EXPECT_EQ(judged(py::build(built("model", "Net"), py::dict({}))).weakest, Verdict::unknown);
  EXPECT_EQ(judged(py::call("collections", "defaultdict", {py::global("model", "make")})).use, "handed over");
  expect(Verdict::known, py::list({py::global("torch.nn.functional", "relu")}), "what is only named");
  expect(Verdict::unknown, py::call("collections", "OrderedDict", {}) + ")R", "what was computed is called");
  expect(Verdict::unknown, py::build(py::ordered_dict(), py::dict({{"__class__", py::none()}})),
         "a state that changes the class");
}

TEST(Judge, KnowsALoaderOnlyWithBytesThatAreInTheFile) {
  expect(Verdict::known, loaded(py::bytes("abc")), "bytes");
  expect(Verdict::known, loaded(latin1("abc")), "bytes of protocol 2");
  EXPECT_EQ(judged(loaded(py::bytes("abc"))).loaded, 1U);
  for (const auto& [what, bytes] : std::vector<std::pair<std::string, py::Ops>>{
           {"rot13", py::call("_codecs", "encode", {py::text("a"), py::text("rot13")})},
           {"utf-16", py::call("_codecs", "encode", {py::text("a"), py::text("utf-16")})},
           {"cp037", py::call("_codecs", "encode", {py::text("a"), py::text("cp037")})},
           {"the codec that nobody named", py::call("_codecs", "encode", {py::text("a")})},
           {"bytes([...])", py::call("builtins", "bytes", {py::list({py::integer(46)})})},
           {"a bytearray that is appended to", appended(byte_array("abc"), py::integer(46))},
           {"bytes of bytes", py::call("builtins", "bytes", {latin1("a")})},
           {"zlib", py::call("zlib", "decompress", {py::bytes("a")})},
           {"an unknown function", py::call("model", "decode", {py::bytes("a")})},
           {"a codec that is computed", py::call("_codecs", "encode", {py::text("a"), latin1("latin1")})},
       }) {
    expect(Verdict::dangerous, loaded(bytes), what);
  }
}

TEST(Judge, CallsDangerousWhatLeadsToCodeUnderAnyName) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"torch._utils", "_import_dotted_name"},
      {"sympy", "sympify"},
      {"sympy.core.sympify", "sympify"},
      {"typing", "get_type_hints"},
      {"string", "Formatter.get_field"},
      {"yaml", "unsafe_load_all"},
      {"numpy", "ndarray.tofile"},
      {"torch.serialization", "_open_file"},
      {"torch.distributed.distributed_c10d", "_tensor_to_object"},
      {"any.module", "system"},
      {"any.module", "import_module"},
      {"a", "B.loads"},
      {"pip.__main__", "X"},
      {"a", "__import__"},
  };
  for (const auto& [module, name] : names) {
    expect(Verdict::dangerous, py::call(module, name, {py::text("a")}), module + "." + name);
    expect(Verdict::dangerous, py::list({py::global(module, name)}), module + "." + name + ", only named");
    EXPECT_EQ(judged(py::call(module, name, {}), {"*"}).weakest, Verdict::dangerous) << "no pattern makes it known";
  }
}

TEST(Judge, AsksForAsManyArgumentsAsTheRowAllowsAndOfTheirKind) {
  const py::Ops text = py::text("a"), numbers = py::list({py::integer(1)});
  const auto encode = [](const std::vector<py::Ops>& arguments) { return py::call("_codecs", "encode", arguments); };
  expect(Verdict::known, py::call("builtins", "range", std::vector<py::Ops>(16, py::integer(1))), "16 numbers");
  expect(Verdict::unknown, py::call("builtins", "range", std::vector<py::Ops>(17, py::integer(1))), "17 numbers");
  expect(Verdict::unknown, py::call("builtins", "range", {numbers}), "a list");
  expect(Verdict::unknown, encode({text, py::text("latin1"), py::text("strict")}), "a codec and more");
  expect(Verdict::unknown, encode({py::bytes("a"), py::text("latin1")}), "a codec for bytes");
  expect(Verdict::unknown, encode({text, py::bytes("latin1")}), "a codec that is bytes");
  expect(Verdict::dangerous, py::call("torch.storage", "_load_from_bytes", {py::bytes("a"), text}), "two to load");
  expect(Verdict::dangerous, py::call("torch.storage", "_load_from_bytes", {}), "nothing to load");
  for (const py::Ops& first : {text, numbers, py::ordered_dict()})
    expect(Verdict::unknown, py::call("copyreg", "_reconstructor", {first, text, text}), "no class to make");
  expect(Verdict::unknown, py::call("copyreg", "_reconstructor", {}), "nothing to make");
  expect(Verdict::unknown, py::call("copyreg", "__newobj__", {text}), "a text to make an instance of");
  expect(Verdict::unknown, py::call("builtins", "str", {numbers}), "the text of a list");
  expect(Verdict::unknown, py::call("builtins", "bytes", {py::bytes("a"), py::text("utf-8")}), "bytes, and a codec");
  expect(Verdict::unknown, py::call("builtins", "type", {}), "the class of nothing");
}

TEST(Judge, AsksForArgumentsWithNamesToo) {
  const auto with = [](const py::Ops& keywords) {
    return py::global("builtins", "int") + py::tuple({py::text("1")}) + keywords + "\x92";
  };
  expect(Verdict::known, with(py::dict({})), "none");
  expect(Verdict::unknown, with(py::dict({{"base", py::integer(16)}})), "one");
}

TEST(Judge, TakesNoBytesForLiteralThatWereChanged) {
  const py::Ops bytes = latin1("abc");
  expect(Verdict::dangerous, loaded(appended(bytes, py::integer(1))), "appended to");
  expect(Verdict::dangerous, loaded(stored(bytes, py::text("a"), py::none())), "stored in");
  expect(Verdict::dangerous, loaded(py::build(bytes, py::dict({}))), "given a state");
  expect(Verdict::dangerous, loaded(py::list({py::bytes("abc")})), "in a list");
  expect(Verdict::dangerous, loaded(py::call("_codecs", "decode", {py::text("a"), py::text("latin1")})), "decoded");
}

TEST(Judge, KnowsAFunctionOfNumPyByTwoTextsOnly) {
  const auto ufunc = [](const std::vector<py::Ops>& arguments) {
    return py::call("numpy.core", "_ufunc_reconstruct", arguments);
  };
  const py::Ops numpy = py::text("numpy"), add = py::text("add");
  expect(Verdict::known, ufunc({numpy, add}), "numpy.add");
  expect(Verdict::known, ufunc({py::text("scipy.special._ufuncs"), py::text("expit")}), "scipy.special");
  for (const auto& [what, arguments] : std::vector<std::pair<std::string, std::vector<py::Ops>>>{
           {"one text", {numpy}},
           {"three texts", {numpy, add, add}},
           {"a module that is no text", {py::bytes("numpy"), add}},
           {"a name that is no text", {numpy, py::bytes("add")}},
           {"another module", {py::text("model"), add}},
           {"a module inside of numpy", {py::text("numpy.linalg"), add}},
           {"a module that begins like numpy", {py::text("numpyro"), add}},
           {"a module that begins like one of scipy's", {py::text("scipy.specials.a"), add}},
           {"a name that leads elsewhere", {numpy, py::text("Core.Add")}},
           {"a name that is dangerous", {numpy, py::text("load")}},
       })
    EXPECT_NE(judged(ufunc(arguments)).weakest, Verdict::known) << what;
}

py::Ops module_state(const std::vector<std::pair<std::string, py::Ops>>& more = {}) {
  std::vector<std::pair<std::string, py::Ops>> all = {
      {"_parameters", py::ordered_dict()}, {"_buffers", py::ordered_dict()}, {"_modules", py::ordered_dict()}};
  all.insert(all.end(), more.begin(), more.end());
  return py::dict(all);
}

TEST(Judge, KnowsAnUnknownClassThatIsGivenWhatEveryModuleHas) {
  EXPECT_EQ(judged(py::build(built("model", "Net"), module_state())).rule, "a module's own attributes");
  const std::vector<std::pair<std::string, py::Ops>> fifteen(15, {"training", py::boolean(true)});
  expect(Verdict::known, py::build(built("model", "Net"), module_state(fifteen)), "as many attributes as there are");
  expect(Verdict::dangerous, py::build(built("os", "Net"), module_state()), "a dangerous class");
}

TEST(Judge, DoesNotKnowAnUnknownClassThatIsGivenMoreThanEveryModuleHas) {
  const py::Ops net = built("model", "Net"), state = module_state();
  const py::Ops named = py::global("model", "Net") + py::tuple({}) + py::dict({{"a", py::none()}}) + "\x92";
  std::vector<std::pair<std::string, py::Ops>> sixteen(16, {"training", py::boolean(true)});
  for (const auto& [what, object] : std::vector<std::pair<std::string, py::Ops>>{
           {"no state", net},
           {"called", py::build(py::call("model", "Net", {}), state)},
           {"an argument", py::build(built("model", "Net", {py::none()}), state)},
           {"an argument with a name", py::build(named, state)},
           {"an item", appended(py::build(net, state), py::none())},
           {"a pair", stored(py::build(net, state), py::text("a"), py::none())},
           {"two states", py::build(py::build(net, py::dict({{"a", py::none()}})), state)},
           {"a tuple", py::build(net, py::tuple({state, py::none()}))},
           {"an object with such pairs", py::build(net, py::call("collections", "OrderedDict", {}) + state.substr(1))},
           {"too few attributes", py::build(net, py::dict({{"_parameters", py::none()}, {"_buffers", py::none()}}))},
           {"more attributes than there are", py::build(net, module_state(sixteen))},
           {"another attribute", py::build(net, module_state({{"path", py::none()}}))},
           {"text", py::build(net, module_state({{"training", py::text("a")}}))},
           {"bytes", py::build(net, module_state({{"training", py::bytes("a")}}))},
           {"a bytearray", py::build(net, module_state({{"training", byte_array("a")}}))},
           {"a name", py::build(net, module_state({{"training", py::global("model", "make")}}))},
           {"a name that may be called", py::build(net, module_state({{"training", py::global("builtins", "list")}}))},
           {"a key that is no text", py::build(net, state + py::integer(1) + py::none() + "s")},
           {"an attribute twice", py::build(net, module_state({{"_modules", py::none()}}))},
       })
    EXPECT_EQ(name(judged(object).weakest), name(Verdict::unknown)) << what;
}

TEST(Judge, TrustsNamesForOneRun) {
  EXPECT_EQ(judged(built("mine.layers", "Net")).weakest, Verdict::unknown);
  const Seen seen = judged(built("mine.layers", "Net"), {"other.*", "mine.*"});
  EXPECT_EQ(seen.weakest, Verdict::known);
  EXPECT_EQ(seen.rule, "trusted");
}

TEST(Judge, JudgesANestedClassByItsOuterClass) {
  const auto nested = [](const std::string& module, const std::string& outer, const py::Ops& inner) {
    return py::call("builtins", "getattr", {py::global(module, outer), inner});
  };
  expect(Verdict::known, nested("torch.distributed.checkpoint.metadata", "Metadata", py::text("Inner")) + ")\x81",
         "built");
  expect(Verdict::unknown, nested("model", "Net", py::text("Inner")) + ")\x81", "of an unknown class");
  expect(Verdict::unknown, nested("model", "Net", py::text("Inner")), "of an unknown class, and nothing is made of it");
  expect(Verdict::dangerous, nested("torch", "nn", py::text("Module")), "of a module");
  expect(Verdict::dangerous, nested("model", "Net", py::text("__globals__")), "the way out");
  expect(Verdict::dangerous, nested("model", "Net", py::text("forward")), "a function");
  expect(Verdict::dangerous, nested("model", "Net", latin1("Inner")), "a name that is computed");
  expect(Verdict::dangerous, py::list({py::global("builtins", "getattr")}), "only named");
  const std::string metadata = "torch.distributed.checkpoint.metadata";
  for (const char* inner : {"A", "Z", "_Inner"})
    expect(Verdict::known, nested(metadata, "Metadata", py::text(inner)), inner);
  for (const char* inner : {"", "_", "__Inner", "inner", "@", "[", "Inner.__globals__", "Inner.Other"})
    expect(Verdict::dangerous, nested(metadata, "Metadata", py::text(inner)), inner);
  for (const char* outer : {"metadata", "_metadata", "Metadata.forward", "Metadata.__Inner"})
    expect(Verdict::dangerous, nested(metadata, outer, py::text("Inner")), outer);
  expect(Verdict::dangerous, nested("string", "Template", py::text("Formatter")), "a dangerous class beside it");
  expect(Verdict::dangerous, nested("string", "Formatter", py::text("Inner")), "of a dangerous class");
  const py::Ops outer = py::global(metadata, "Metadata"), inner = py::text("Inner");
  expect(Verdict::dangerous, py::call("builtins", "getattr", {outer}), "no name");
  expect(Verdict::dangerous, py::call("builtins", "getattr", {outer, inner, outer}), "something else if there is none");
  expect(Verdict::dangerous, py::call("builtins", "getattr", {inner, inner}), "of a text");
  expect(Verdict::dangerous, py::call("builtins", "getattr", {inner, inner}) + ")R", "what that gives is called");
  expect(Verdict::dangerous, nested(metadata, "Metadata", py::bytes("Inner")), "a name that is bytes");
}

TEST(Judge, KnowsAClassByAnIdThatIsATupleOnly) {
  const py::Ops word = py::text("module"), linear = py::global("torch.nn.modules.linear", "Linear");
  expect(Verdict::known, py::tuple({word, linear, py::text("file"), py::text("source")}) + "Q)\x81", "a tuple");
  expect(Verdict::known, py::tuple({linear}) + "Q)\x81", "without a word");
  expect(Verdict::unknown, py::list({word, linear}) + "Q)\x81", "a list");
  expect(Verdict::unknown, py::tuple({}) + "Q)\x81", "nothing");
  expect(Verdict::unknown, py::tuple({word}) + "Q)\x81", "a word and nothing");
  expect(Verdict::unknown, py::tuple({py::text("other"), linear}) + "Q)\x81", "another word");
  expect(Verdict::unknown, py::tuple({py::bytes("module"), linear}) + "Q)\x81", "a word that is bytes");
}

// torch up to 1.10 calls it with a number.
TEST(Judge, JudgesTheClassOfAStorageAsCalled) {
  const auto storage = [](const py::Ops& type, const py::Ops& word = py::text("storage"),
                          const py::Ops& location = py::text("cpu")) {
    return py::persistent({word, type, py::text("0"), location, py::integer(4)});
  };
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"torch", "FloatStorage"},
                                                        {"torch.cuda", "HalfStorage"},
                                                        {"torch.storage", "UntypedStorage"},
                                                        {"torch.storage", "TypedStorage"},
                                                        {"torch", "UntypedStorage"},
                                                        {"torch", "_UntypedStorage"}})
    expect(Verdict::known, storage(py::global(module, name)), module + "." + name);
  const py::Ops make = py::global("model", "make"), type = py::global("torch", "FloatStorage");
  EXPECT_EQ(judged(storage(make)).use, "called");
  for (const auto& [what, object] : std::vector<std::pair<std::string, py::Ops>>{
           {"an unknown name", storage(make)},
           {"an unknown name in a tensor", py::tensor(storage(make), 0, {4}, {1})},
           {"a word that is bytes", storage(make, py::bytes("storage"))},
           {"a function that asks for more than a number", storage(py::global("copyreg", "_reconstructor"))},
           {"a class that may be built only", storage(py::global("torch.nn.modules.linear", "Linear"))},
           {"what was computed", storage(py::ordered_dict())},
           {"no class", py::persistent({py::text("storage")})},
           {"a name in the place of the key", py::persistent({py::text("storage"), type, make})},
           {"a name behind it", storage(type, py::text("storage"), make)},
           {"a name deep behind it", storage(type, py::text("storage"), py::list({make}))},
       })
    expect(Verdict::unknown, object, what);
  expect(Verdict::dangerous, storage(py::global("torch.storage", "_load_from_bytes")), "a loader");
}

TEST(Judge, JudgesTheArgumentsOfAFunctionThatAnotherOneCalls) {
  const auto from_type = [](const py::Ops& function, const py::Ops& arguments) {
    return py::call("torch._tensor", "_rebuild_from_type_v2",
                    {function, py::global("torch", "Tensor"), py::tuple({arguments}), py::dict({})});
  };
  expect(Verdict::known, from_type(py::global("torch._utils", "_rebuild_tensor_v2"), py::none()), "a tensor");
  expect(Verdict::dangerous, from_type(py::global("os", "system"), py::text("id")), "a shell");
  expect(Verdict::unknown, from_type(py::global("model", "make"), py::none()), "an unknown function");
  const py::Ops load = py::global("torch.storage", "_load_from_bytes");
  EXPECT_EQ(judged(from_type(load, py::bytes("abc"))).loaded, 1U);
  expect(Verdict::dangerous, from_type(load, py::call("builtins", "bytes", {py::list({})})), "computed bytes");
  const py::Ops function = py::global("torch._utils", "_rebuild_tensor_v2"), type = py::global("torch", "Tensor");
  const py::Ops some = py::tuple({py::none()}), text = py::text("a");
  for (const std::vector<py::Ops>& arguments : std::vector<std::vector<py::Ops>>{
           {function, type, some},
           {function, type, some, py::dict({}), py::none()},
           {text, type, some, py::dict({})},
           {py::tuple({function}) + "Q", type, some, py::dict({})},
           {function, text, some, py::dict({})},
           {function, type, py::list({py::none()}), py::dict({})},
           {load, type, py::tuple({}), py::dict({})},
           {function, type, some, py::dict({{"__class__", py::none()}})},
           {function, py::global("builtins", "bytearray"), some, py::dict({})},
       })
    EXPECT_NE(judged(py::call("torch._tensor", "_rebuild_from_type_v2", arguments)).weakest, Verdict::known);
}

// What such a function calls or makes in its turn would not be judged.
TEST(Judge, DoesNotKnowAFunctionThatAnotherOneCallsIfItCallsOrMakesSomethingItself) {
  const py::Ops dict = py::global("builtins", "dict"), none = py::tuple({});
  const auto from_type = [&](const std::string& module, const std::string& name, const std::vector<py::Ops>& given) {
    return py::call("torch._tensor", "_rebuild_from_type_v2",
                    {py::global(module, name), py::global("torch", "Tensor"), py::tuple(given), py::dict({})});
  };
  expect(Verdict::known, from_type("builtins", "dict", {dict}), "a dict");
  expect(Verdict::unknown, from_type("torch._tensor", "_rebuild_from_type_v2", {dict, dict, none, py::none()}),
         "calls");
  expect(Verdict::unknown, from_type("copyreg", "__newobj__", {dict}), "makes");
}

TEST(Judge, AsksForTheArgumentsOfAClassThatAFunctionMakesAnInstanceOf) {
  const py::Ops type = py::global("builtins", "bytearray"), linear = py::global("torch.nn.modules.linear", "Linear");
  const auto newobj = [](const std::vector<py::Ops>& given) { return py::call("copyreg", "__newobj__", given); };
  const auto newobj_ex = [](const py::Ops& type, const std::vector<py::Ops>& given) {
    return py::call("copyreg", "__newobj_ex__", {type, py::tuple(given), py::dict({})});
  };
  expect(Verdict::known, newobj({type}), "nothing");
  expect(Verdict::unknown, newobj({type, py::integer(1)}), "a number");
  expect(Verdict::known, newobj({linear, py::integer(1)}), "a number for a class that takes anything");
  expect(Verdict::known, newobj_ex(type, {py::bytes("a")}), "bytes in a tuple");
  expect(Verdict::unknown, newobj_ex(type, {py::integer(1)}), "a number in a tuple");
  expect(Verdict::known, py::call("copyreg", "_reconstructor", {type, py::global("builtins", "object"), py::none()}),
         "by its base");
  expect(Verdict::known, py::global("torch.nn.modules.linear", "Linear") + py::tuple({}) + py::dict({}) + "\x92",
         "NEWOBJ_EX builds");
  expect(Verdict::unknown, appended(newobj({linear}), py::none()), "what is made is appended to");
}

// A guarded name is not known by its row if nobody sees what it is called with.
TEST(Judge, DoesNotTakeTheRowOfAGuardedNameThatIsOnlyNamed) {
  using pickle::Given;
  for (const pickle::Allowed& row : pickle::kAllowlist) {
    const auto dot = row.path.rfind('.');
    const py::Ops name = py::global(row.path.substr(0, dot), row.path.substr(dot + 1));
    const bool is_guarded = row.given == Given::literal_bytes || row.given == Given::latin1 ||
                            row.given == Given::nested_class || row.given == Given::calls_first ||
                            row.given == Given::named_ufunc;
    EXPECT_EQ(judged(py::list({name})).rule == "allowlist", !is_guarded) << row.path;
  }
  expect(Verdict::dangerous, py::list({py::global("torch.storage", "_load_from_bytes")}), "a loader");
}

TEST(Judge, GivesTheWeakestVerdictOfTheUsesOfOneName) {
  const py::Ops layer = py::put(py::global("torch.nn.modules.linear", "Linear"), 1) + "0";
  const py::Ops is_called = py::get(1) + ")R0", is_built = py::get(1) + ")\x81" + "0";
  expect(Verdict::unknown, layer + is_called + is_built + "N", "called, then built");
  expect(Verdict::unknown, layer + is_built + is_called + "N", "built, then called");
  const py::Ops make = py::put(py::global("model", "make"), 1) + "0";
  const py::Ops is_handed_over = py::call("builtins", "dict", {py::get(1)}) + "0";
  EXPECT_EQ(judged(make + is_handed_over + is_called + "N").use, "called") << "says more";
  EXPECT_EQ(judged(make + is_called + is_handed_over + "N").use, "called");
  EXPECT_EQ(judged(make + is_called + is_built + "N").use, "called") << "the first of two that say as much";
}

TEST(Judge, JudgesATupleForEachOfItsPlaces) {
  const auto shared = [](const std::vector<py::Ops>& tuple) { return py::put(py::tuple(tuple), 1) + "0"; };
  const py::Ops arguments = shared({py::global("ultralytics.nn.tasks", "DetectionModel")});
  const py::Ops made = py::global("copyreg", "__newobj__") + py::get(1) + "R0";
  const py::Ops called = py::global("builtins", "dict") + py::get(1) + "R0";
  const py::Ops inside = py::call("builtins", "dict", {py::get(1)}) + "0";
  expect(Verdict::known, arguments + made + "N", "a class that is made");
  expect(Verdict::unknown, arguments + made + called + "N", "a class that is made, and an argument");
  expect(Verdict::unknown, arguments + made + inside + "N", "a class that is made, and in an argument");
  const py::Ops id = py::get(1) + "Q0";
  const auto storage = [&](const std::string& module, const std::string& name) {
    return shared({py::text("storage"), py::global(module, name), py::text("0")});
  };
  expect(Verdict::known, storage("torch.storage", "UntypedStorage") + id + "N", "an id");
  expect(Verdict::unknown, storage("torch.storage", "UntypedStorage") + id + inside + "N", "an id, and in an argument");
  expect(Verdict::known, storage("torch", "float32") + inside + "N", "in an argument");
  expect(Verdict::unknown, storage("torch", "float32") + inside + id + "N", "in an argument, and an id");
}

// Python calls attributes of what it is given: dict(x) calls x.keys(), Parameter(x) calls x.detach().
TEST(Judge, DoesNotKnowAnUnlistedNameWhereSomebodyMayCallIt) {
  const py::Ops name = py::global("model", "make");
  const auto namespace_with = [](const py::Ops& value) {
    return py::build(built("argparse", "Namespace"), py::dict({{"keys", value}}));
  };
  expect(Verdict::known, namespace_with(py::integer(1)), "a number");
  expect(Verdict::unknown, namespace_with(name), "an attribute");
  expect(Verdict::unknown, namespace_with(py::list({py::tuple({name})})), "deep in an attribute");
  expect(Verdict::unknown, py::call("collections", "OrderedDict", {py::list({py::tuple({name})})}),
         "deep in arguments");
  expect(Verdict::unknown, stored(py::ordered_dict(), py::text("a"), name), "a value of a dict");
  expect(Verdict::unknown, stored(py::ordered_dict(), name, py::none()), "a key of a dict");
  const py::Ops partial = py::build(py::call("functools", "partial", {py::global("builtins", "dict")}),
                                    py::tuple({name, py::tuple({}), py::dict({}), py::none()}));
  expect(Verdict::unknown, py::call("builtins", "dict", {namespace_with(partial)}), "a partial that dict() calls");
  const py::Ops module_id = py::tuple({py::text("module"), name, py::text(""), py::text("")}) + "Q";
  expect(Verdict::unknown, namespace_with(module_id), "a class by a persistent id");
  expect(Verdict::unknown, namespace_with(py::tuple({name, py::text(""), py::text("")}) + "Q"), "an id of 2016");
  expect(Verdict::unknown, namespace_with(py::tuple({py::list({name})}) + "Q"), "deep in an id");
  expect(Verdict::unknown, namespace_with(py::tuple({py::bytes("module"), name}) + "Q"), "behind a word that is bytes");
  const py::Ops layers = py::dict({{"_parameters", py::dict({})},
                                   {"_buffers", py::dict({})},
                                   {"_modules", py::dict({})},
                                   {"_forward_hooks", py::dict({{"0", name}})}});
  expect(Verdict::unknown, py::build(built("model", "Net"), layers), "a hook of a module");
}

// Some writers spell the id of a storage as a tuple, and its class is not called.
TEST(Judge, KnowsTheClassOfAStorageInATupleThatIsTheIdOfOneOnly) {
  const auto verdict = [](const std::vector<py::Ops>& tuple) {
    // If a graph takes a node that is no name for the number of one, it finds a storage.
    py::Ops names;
    for (int i = 0; i < 1000; ++i) names += py::global("torch", "FloatStorage") + "0";
    return judged(names + py::call("builtins", "dict", {py::tuple(tuple)}) + names + "N").weakest;
  };
  const py::Ops word = py::text("storage"), key = py::text("0"), type = py::global("torch", "FloatStorage");
  EXPECT_EQ(verdict({word, type, key}), Verdict::known);
  EXPECT_EQ(verdict({word, type, key, py::text("cpu"), py::integer(1)}), Verdict::known);
  for (const auto& [what, tuple] : std::vector<std::pair<std::string, std::vector<py::Ops>>>{
           {"no key", {word, type}},
           {"a word that is bytes", {py::bytes("storage"), type, key}},
           {"another word", {py::text("module"), type, key}},
           {"a list in the place of the class", {word, py::list({py::global("model", "make")}), key}},
           {"a tensor", {word, py::global("torch", "FloatTensor"), key}},
           {"somebody else's storage", {word, py::global("model", "MyStorage"), key}},
           {"a storage of no type", {word, py::global("torch.storage", "UntypedStorage"), key}},
           {"a name behind the class", {word, type, key, py::global("model", "make")}},
       })
    EXPECT_EQ(verdict(tuple), Verdict::unknown) << what;
}

TEST(Judge, KnowsNamesThatMayBeCalledWithAnything) {
  expect(Verdict::known, py::call("collections", "defaultdict", {py::global("builtins", "list")}), "a factory");
  expect(Verdict::known, py::call("functools", "partial", {py::global("torch.nn.modules.normalization", "LayerNorm")}),
         "a layer");
  expect(Verdict::known,
         py::build(built("torch.nn.modules.linear", "Linear"), py::dict({{"dtype", py::global("torch", "float32")}})),
         "an element type");
  expect(Verdict::unknown, py::call("functools", "partial", {py::global("ultralytics.nn.tasks", "DetectionModel")}),
         "a class whose constructor evaluates text");
  expect(Verdict::unknown,
         py::call("numpy.random._pickle", "__generator_ctor",
                  {py::dict({}), py::global("ultralytics.nn.tasks", "DetectionModel")}),
         "a class that a constructor of NumPy calls");
  expect(Verdict::unknown, py::call("numpy.random._pickle", "__bit_generator_ctor", {py::global("torch.optim", "SGD")}),
         "a class in the place of a generator");
  expect(Verdict::known,
         py::call("numpy.random._pickle", "__generator_ctor",
                  {py::text("PCG64"), py::global("numpy.random._pickle", "__bit_generator_ctor")}),
         "a generator of NumPy");
}

TEST(Judge, KnowsAReconstructorOnlyWithABaseOfPythonsOwn) {
  const auto reconstructed = [](const py::Ops& base, const py::Ops& value) {
    return py::call("copyreg", "_reconstructor", {py::global("torch.nn.modules.linear", "Linear"), base, value});
  };
  expect(Verdict::known, reconstructed(py::global("builtins", "object"), py::none()), "object");
  expect(Verdict::unknown, reconstructed(py::global("torch.nn.modules.linear", "Linear"), py::dict({})), "itself");
  expect(Verdict::unknown, reconstructed(py::global("builtins", "dict"), py::ordered_dict()), "a value with methods");
  expect(Verdict::unknown, reconstructed(py::global("model", "dict"), py::dict({})), "a dict of somebody else's");
  expect(Verdict::unknown, reconstructed(py::global("builtins", "bytearray"), py::none()), "another type of Python's");
  // A graph that takes the 2 for the number of a name finds that of the value.
  expect(Verdict::unknown, reconstructed(py::integer(2), py::global("builtins", "dict")), "a number");
  const py::Ops linear = py::global("torch.nn.modules.linear", "Linear"), object = py::global("builtins", "object");
  for (const std::vector<py::Ops>& arguments : std::vector<std::vector<py::Ops>>{
           {linear, object, py::none(), py::none()}, {py::text("Linear"), object, py::none()}})
    expect(Verdict::unknown, py::call("copyreg", "_reconstructor", arguments), "one too many, or no class");
}

TEST(Judge, KnowsNewobjExOnlyWithAClassItsArgumentsAndNoKeywords) {
  const auto newobj_ex = [](const py::Ops& keywords) {
    return py::call("copyreg", "__newobj_ex__", {py::global("torch", "Tensor"), py::tuple({}), keywords});
  };
  expect(Verdict::known, newobj_ex(py::dict({})), "no keywords");
  expect(Verdict::unknown, newobj_ex(py::dict({{"cdata", py::integer(1)}})), "a number that becomes a pointer");
  expect(Verdict::unknown,
         py::global("torch.storage", "UntypedStorage") + py::tuple({}) + py::dict({{"allocator", py::integer(1)}}) +
             "\x92",
         "a number that becomes a pointer, by NEWOBJ_EX");
  const py::Ops tensor = py::global("torch", "Tensor"), none = py::tuple({});
  for (const auto& [what, arguments] : std::vector<std::pair<std::string, std::vector<py::Ops>>>{
           {"one too many", {tensor, none, py::dict({}), py::none()}},
           {"no class", {py::text("Tensor"), none, py::dict({})}},
           {"arguments in a list", {tensor, py::list({}), py::dict({})}},
           {"keywords in a tuple", {tensor, none, none}},
       })
    expect(Verdict::unknown, py::call("copyreg", "__newobj_ex__", arguments), what);
}

TEST(Judge, KnowsAStateOnlyIfNothingInItIsLookedForByPython) {
  const auto given = [](const py::Ops& state) { return py::build(built("argparse", "Namespace"), state); };
  const py::Ops hidden = stored(py::ordered_dict(), py::text("__class__"), py::none());
  expect(Verdict::known, given(py::ordered_dict({{"a", py::none()}})), "an OrderedDict");
  expect(Verdict::known, given(py::tuple({py::none(), py::dict({{"a", py::none()}})})), "slots");
  expect(Verdict::known, given(py::dict({{"a", py::text("__class__")}})), "a value");
  expect(Verdict::unknown, py::build(given(py::dict({{"__class__", py::none()}})), py::dict({})), "two states");
  expect(Verdict::unknown, given(hidden), "an OrderedDict with a name of Python's");
  expect(Verdict::unknown, given(py::tuple({py::none(), hidden})), "slots with a name of Python's");
  expect(Verdict::unknown, given(py::tuple({hidden, py::none()})), "attributes beside slots");
  expect(Verdict::unknown, given(built("argparse", "Namespace")), "an object with attributes of its own");
  const py::Ops pair = py::tuple({py::text("__class__"), py::none()});
  expect(Verdict::unknown, given(py::call("collections", "OrderedDict", {py::list({pair})})),
         "an OrderedDict of pairs");
  expect(Verdict::unknown, given(py::build(py::ordered_dict(), py::dict({{"a", py::none()}}))),
         "an OrderedDict with a state");
  expect(Verdict::unknown,
         stored(py::call("lightning.fabric.utilities.data", "AttributeDict", {}), py::text("__setstate__"), py::none()),
         "a key that is an attribute");
  expect(Verdict::known, stored(py::ordered_dict(), py::text("__setstate__"), py::none()), "a key that is data");
}

TEST(Judge, SeesThatAnImportIsChanged) {
  expect(Verdict::dangerous, py::build(py::global("torch._utils", "_rebuild_tensor"), py::dict({{"a", py::none()}})),
         "BUILD");
  expect(Verdict::dangerous, latin1("os") + py::text("system") + "\x93", "STACK_GLOBAL of what was computed");
}

// Each way of computing an argument, with its own verdict.
struct Way {
  std::string what;
  py::Ops argument;
  Verdict verdict;
};

std::vector<Way> ways() {
  return {
      {"rot13", py::call("_codecs", "encode", {py::text("a"), py::text("rot13")}), Verdict::unknown},
      {"bytes of numbers", py::call("builtins", "bytes", {py::list({py::integer(1)})}), Verdict::unknown},
      {"an unknown call", py::call("model", "make", {}), Verdict::unknown},
      {"an unknown class", built("model", "Net"), Verdict::unknown},
      {"an unknown name", py::global("model", "make"), Verdict::unknown},
      {"a state of an unknown class", py::build(built("model", "Net"), py::dict({})), Verdict::unknown},
      {"a function that may be called, and not handed over", py::global("torch._utils", "_rebuild_tensor_v2"),
       Verdict::unknown},
      {"a dangerous call", py::call("os", "system", {py::text("id")}), Verdict::dangerous},
      {"a dangerous name", py::global("os", "system"), Verdict::dangerous},
      {"an import by name", py::call("torch._utils", "_import_dotted_name", {py::text("os.system")}),
       Verdict::dangerous},
      {"a loader of computed bytes", loaded(py::call("builtins", "bytes", {py::list({})})), Verdict::dangerous},
      {"a list of one", py::list({py::call("os", "system", {})}), Verdict::dangerous},
      {"a change of a call", stored(py::ordered_dict(), py::text("a"), py::call("model", "make", {})),
       Verdict::unknown},
      {"a computed import", latin1("os") + latin1("system") + "\x93", Verdict::dangerous},
      {"a computed call", py::ordered_dict() + ")R", Verdict::unknown},
      {"a bytearray that grew", appended(byte_array("abc"), py::integer(1)), Verdict::unknown},
  };
}

TEST(Judge, GivesTheWeakestOfItsPartsWhereverAnArgumentIsComputed) {
  std::size_t tried = 0;
  for (const pickle::Allowed& row : pickle::kAllowlist) {
    const auto dot = row.path.rfind('.');
    const std::string module(row.path.substr(0, dot)), name(row.path.substr(dot + 1));
    for (const Way& way : ways()) {
      for (const py::Ops& use :
           {py::call(module, name, {way.argument}), py::call(module, name, {py::none(), py::tuple({way.argument})}),
            built(module, name, {way.argument}), py::build(built(module, name), way.argument),
            py::build(built(module, name), py::dict({{"a", way.argument}})),
            stored(built(module, name), py::text("a"), way.argument), appended(built(module, name), way.argument)}) {
        ++tried;
        EXPECT_GE(judged(use).weakest, way.verdict) << row.path << " with " << way.what;
      }
      EXPECT_NE(judged(py::call(module, name, {way.argument})).weakest, Verdict::known)
          << row.path << " with " << way.what;
    }
  }
  EXPECT_GT(tried, 25'000U);
}

TEST(Judge, TakesTimeThatGrowsWithThePickleHoweverMuchIsShared) {
  // Every object is called with the same thousand arguments and is given the same state.
  std::vector<py::Ops> many(1000, py::global("model", "make"));
  std::vector<std::pair<std::string, py::Ops>> attributes;
  for (int i = 0; i < 1000; ++i) attributes.push_back({std::to_string(i), py::none()});
  py::Ops ops = py::put(py::tuple(many), 1) + "0" + py::put(py::dict(attributes), 2) + "0";
  py::Ops one = py::global("model", "make") + py::get(1) + "R" + py::get(2) + "b0";
  for (int i = 0; i < 20'000; ++i) ops += one;
  EXPECT_EQ(judged(ops + "N").weakest, Verdict::unknown);
}

TEST(Judge, TakesTimeThatGrowsWithThePickleHoweverDeepAnIdIs) {
  // Every object is given a persistent id of a persistent id of a hundred thousand others, and storages share an id.
  py::Ops ops = py::put(py::integer(1) + std::string(100'000, 'Q'), 1) + "0";
  std::vector<py::Ops> id(1000, py::list({}));
  id[0] = py::text("storage");
  id[1] = py::global("torch", "FloatStorage");
  ops += py::put(py::tuple(id), 2) + "0";
  const py::Ops one = py::global("collections", "OrderedDict") + py::get(1) + "\x85R0" + py::get(2) + "Q0";
  for (int i = 0; i < 20'000; ++i) ops += one;
  EXPECT_EQ(judged(ops + "N").weakest, Verdict::known);
}

}  // namespace
}  // namespace ballast
