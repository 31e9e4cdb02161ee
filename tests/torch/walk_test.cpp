// From the object in a pickle to names: dicts, lists, modules, unknown objects, and graphs that are not trees.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include <algorithm>

#include "builders/torch_file.hpp"
#include "support/cpu_time.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::dict;
using py::integer;
using py::Ops;
using test::names_of;
using test::TorchZip;
using Names = std::vector<std::string>;

// A tensor of one element, which distinguishes it from others.
Ops one(std::int64_t element = 0) { return py::tensor(py::storage("Float", "0", 6), element, {1}, {1}); }

Checkpoint open_object(const Ops& object) {
  TorchZip zip;
  zip.object(object).record("0", test::raw<float>({0, 1, 2, 3, 4, 5}));
  return zip.open();
}

Names names_in(const Ops& object) { return names_of(open_object(object)); }

const PlainValue* value_at(const Checkpoint& checkpoint, std::string_view path) {
  const auto found = std::find_if(checkpoint.values.begin(), checkpoint.values.end(),
                                  [&](const PlainValue& value) { return value.path == path; });
  return found == checkpoint.values.end() ? nullptr : &*found;
}

template <class T>
T value_as(const Checkpoint& checkpoint, std::string_view path) {
  const PlainValue* value = value_at(checkpoint, path);
  const T* held = value == nullptr ? nullptr : std::get_if<T>(&value->value);
  EXPECT_NE(held, nullptr) << path;
  return held == nullptr ? T{} : *held;
}

Ops pairs(const std::vector<std::pair<Ops, Ops>>& items) { return "}" + py::pairs(items); }
Ops object(std::string_view name) { return py::global("my.module", name) + ")\x81"; }

TEST(TorchWalk, JoinsKeysAndIndicesWithDots) {
  EXPECT_EQ(names_in(dict({{"a", dict({{"b", one()}, {"c", py::list({one(), one()})}})}, {"d", py::tuple({one()})}})),
            (Names{"a.b", "a.c.0", "a.c.1", "d.0"}));
  EXPECT_EQ(names_in(py::list({one(), dict({{"x", one()}})})), (Names{"0", "1.x"}));
  EXPECT_EQ(names_in(one()), Names{""});
  EXPECT_EQ(names_in(dict({{"", one()}, {"a", dict({{"", one()}})}})), (Names{"", "a."}));
  EXPECT_EQ(names_in(dict({})), Names{});
}

TEST(TorchWalk, ShowsKeysThatAreNotTextAsPythonDoes) {
  EXPECT_EQ(names_in(pairs({{integer(3), one()},
                            {integer(-4), one()},
                            {py::real(0.5), one()},
                            {py::real(1), one()},
                            {py::none(), one()},
                            {py::boolean(true), one()},
                            {py::tuple({integer(1), py::text("a")}), one()},
                            {py::bytes(std::string("\x00\xff'", 3)), one()},
                            {py::text("t"), one()}})),
            (Names{"3", "-4", "0.5", "1.0", "None", "True", "(1, 'a')", "b\"\\x00\\xff'\"", "t"}));
  EXPECT_EQ(names_in(pairs({{py::call("_codecs", "encode", {py::text("\xc3\xbf"), py::text("latin1")}), one()}})),
            Names{"b'\\xff'"});
}

TEST(TorchWalk, GivesDifferentNamesToKeysThatCollide) {
  const Checkpoint checkpoint = open_object(
      dict({{"a.b", one(0)}, {"a", dict({{"b", one(1)}})}, {"a.b~2", one(2)}, {"x", py::list({})}, {"a.b", one(3)}}));
  EXPECT_EQ(names_of(checkpoint), (Names{"a.b", "a.b~2", "a.b~2~2", "a.b~3"}));
  EXPECT_EQ(test::values_of<float>(checkpoint.at("a.b~2")), std::vector<float>{1});
  EXPECT_TRUE(test::has_note(checkpoint, "another tensor is called \"a.b\""));
}

TEST(TorchWalk, KeepsPlainValuesWithTheirTypes) {
  const Checkpoint checkpoint =
      open_object(dict({{"epoch", integer(3)},
                        {"lr", py::real(1e-3)},
                        {"ok", py::boolean(true)},
                        {"nothing", py::none()},
                        {"name", py::text("gpt")},
                        {"big", std::string("\x8a\x09\0\0\0\0\0\0\0\0\x01", 11)},
                        {"raw", py::bytes("ab")},
                        {"empty", py::list({})},
                        {"size", py::call("torch", "Size", {py::integers({2, 3})})},
                        {"device", py::call("torch", "device", {py::text("cuda"), integer(0)})},
                        {"dtype", py::global("torch", "float16")},
                        {"set", py::call("builtins", "set", {py::list({integer(1)})})},
                        {"date", py::call("datetime", "datetime", {py::bytes("x")})}}));
  EXPECT_TRUE(checkpoint.tensors.empty());
  EXPECT_EQ(value_as<std::int64_t>(checkpoint, "epoch"), 3);
  EXPECT_EQ(value_as<double>(checkpoint, "lr"), 1e-3);
  EXPECT_EQ(value_as<bool>(checkpoint, "ok"), true);
  value_as<std::monostate>(checkpoint, "nothing");
  EXPECT_EQ(value_as<std::string>(checkpoint, "name"), "gpt");
  EXPECT_EQ(value_as<std::string>(checkpoint, "big"), "18446744073709551616");
  EXPECT_EQ(value_as<std::string>(checkpoint, "raw"), "b'ab'");
  EXPECT_EQ(value_as<std::string>(checkpoint, "empty"), "[]");
  EXPECT_EQ(value_as<std::string>(checkpoint, "size"), "torch.Size([2, 3])");
  EXPECT_EQ(value_as<std::string>(checkpoint, "device"), "device(type='cuda', index=0)");
  EXPECT_EQ(value_at(checkpoint, "date")->type, "datetime.datetime");
  EXPECT_EQ(value_at(checkpoint, "epoch")->type, "int");
}

TEST(TorchWalk, ReadsDictsThatAreObjects) {
  EXPECT_EQ(names_in(py::ordered_dict({{"a", one()}, {"b", one()}})), (Names{"a", "b"}));
  const Ops listed = py::list({py::list({py::text("a"), one()}), py::tuple({py::text("b"), one()}), integer(3),
                               py::list({}), py::list({py::text("c")})});
  EXPECT_EQ(names_in(py::call("collections", "OrderedDict", {listed})), (Names{"a", "b"}));
  EXPECT_EQ(names_in(py::call("collections", "Counter", {dict({{"a", one()}})})), Names{"a"});
  const Ops defaulted = py::call("collections", "defaultdict", {py::global("builtins", "list")});
  EXPECT_EQ(names_in(defaulted + py::pairs({{py::text("a"), one()}})), Names{"a"});
  EXPECT_EQ(names_in(py::call("collections", "deque", {py::list({one(), one()})})), (Names{"0", "1"}));
  EXPECT_EQ(names_in(py::call("collections", "deque", {}) + "(" + one() + one() + "e"), (Names{"0", "1"}));
}

TEST(TorchWalk, DoesNotTakeTheMetadataOfAStateDictForTensors) {
  const Ops metadata = dict({{"_metadata", py::ordered_dict({{"", dict({{"version", integer(1)}})}})}});
  const Checkpoint checkpoint = open_object(py::build(py::ordered_dict({{"w", one()}}), metadata));
  EXPECT_EQ(names_of(checkpoint), Names{"w"});
  EXPECT_TRUE(checkpoint.values.empty());
}

TEST(TorchWalk, ShowsTheAttributesOfUnknownObjects) {
  const Checkpoint checkpoint = open_object(dict(
      {{"args", py::build(py::global("argparse", "Namespace") + ")R", dict({{"lr", py::real(0.1)}, {"w", one()}}))},
       {"made", py::call("my", "make", {one(), integer(2)})},
       {"slots", py::build(object("A"), py::tuple({py::none(), dict({{"s", one()}})}))},
       {"both", py::build(object("A"), py::tuple({dict({{"d", one()}}), dict({{"s", one()}})}))},
       {"other", py::build(object("A"), py::list({one()}))}}));
  EXPECT_EQ(names_of(checkpoint), (Names{"args.w", "made.<arg0>", "slots.s", "both.d", "both.s", "other.<state>.0"}));
  EXPECT_EQ(value_as<double>(checkpoint, "args.lr"), 0.1);
  EXPECT_EQ(value_as<std::int64_t>(checkpoint, "made.<arg1>"), 2);
  EXPECT_TRUE(test::has_note(checkpoint, "kept as data that nothing runs"));
}

TEST(TorchWalk, LooksBehindTheReconstructorOfProtocolTwo) {
  const Ops rebuilt = py::call("copyreg", "_reconstructor",
                               {py::global("my.module", "A"), py::global("builtins", "object"), py::none()});
  EXPECT_EQ(names_in(py::build(rebuilt, dict({{"w", one()}}))), Names{"w"});
}

// The dicts that every nn.Module has, and those that its class adds.
Ops module(const std::vector<std::pair<std::string, Ops>>& parameters,
           const std::vector<std::pair<std::string, Ops>>& buffers,
           const std::vector<std::pair<std::string, Ops>>& modules,
           std::vector<std::pair<std::string, Ops>> more = {}) {
  std::vector<std::pair<std::string, Ops>> state = {{"training", py::boolean(true)},
                                                    {"_parameters", py::ordered_dict(parameters)},
                                                    {"_buffers", dict(buffers)},
                                                    {"_backward_hooks", py::ordered_dict()},
                                                    {"_modules", py::ordered_dict(modules)}};
  state.insert(state.end(), more.begin(), more.end());
  return py::build(object("Net"), dict(state));
}

TEST(TorchWalk, NamesAModuleAsItsStateDictWould) {
  const Ops linear = module({{"weight", one()}, {"bias", py::none()}}, {}, {});
  const Ops norm =
      module({{"weight", one()}}, {{"running_mean", one()}, {"scratch", one()}, {"unset", py::none()}}, {},
             {{"_non_persistent_buffers_set", py::call("builtins", "set", {py::list({py::text("scratch")})})}});
  const Checkpoint checkpoint =
      open_object(module({}, {}, {{"fc", linear}, {"bn", norm}, {"gone", py::none()}}, {{"width", integer(7)}}));
  EXPECT_EQ(names_of(checkpoint), (Names{"fc.weight", "bn.weight", "bn.running_mean"}));
  EXPECT_EQ(value_as<std::int64_t>(checkpoint, "width"), 7);
  EXPECT_EQ(value_at(checkpoint, "training"), nullptr);
  EXPECT_EQ(value_at(checkpoint, "_backward_hooks"), nullptr);
}

TEST(TorchWalk, DoesNotTakeALookAlikeForAModule) {
  const Ops half = py::build(object("A"), dict({{"_parameters", dict({{"w", one()}})}, {"_buffers", integer(1)}}));
  EXPECT_EQ(names_in(half), Names{"_parameters.w"});
}

TEST(TorchWalk, EndsIfAnObjectContainsItself) {
  // a = {"w": tensor}; a["a"] = a; a["l"] = [a]
  const Ops cyclic =
      "}" + std::string("q\x01") +
      py::pairs({{py::text("w"), one()}, {py::text("a"), "h\x01"}, {py::text("l"), py::list({"h\x01"})}});
  EXPECT_EQ(names_in(cyclic), Names{"w"});
}

TEST(TorchWalk, ListsASharedPartUnderEachPathToIt) {
  const Ops shared = dict({{"a", py::put(dict({{"w", one()}}), 7)}, {"b", py::get(7)}, {"c", py::list({py::get(7)})}});
  const Checkpoint checkpoint = open_object(shared);
  EXPECT_EQ(names_of(checkpoint), (Names{"a.w", "b.w", "c.0.w"}));
  EXPECT_EQ(checkpoint.at("a.w").storage(), checkpoint.at("b.w").storage());
}

TEST(TorchWalk, SuggestsSubtreesWithTensorsAsRoots) {
  const Checkpoint checkpoint =
      open_object(dict({{"optimizer", dict({{"state", dict({{"0", dict({{"exp_avg", one()}})}})}})},
                        {"state_dict", py::ordered_dict({{"w", one()}, {"b", one()}})},
                        {"epoch", integer(1)}}));
  ASSERT_FALSE(checkpoint.roots.empty());
  EXPECT_EQ(checkpoint.roots[0].path, "state_dict");
  EXPECT_EQ(checkpoint.roots[0].tensors, 2u);
}

TEST(TorchWalk, CountsTheValuesThatItDoesNotKeep) {
  OpenOptions options;
  options.limits.max_values = 2;
  TorchZip zip;
  zip.object(py::list({integer(1), integer(2), integer(3), integer(4)}));
  const Checkpoint checkpoint = zip.open(options);
  EXPECT_EQ(checkpoint.values.size(), 2u);
  EXPECT_TRUE(test::has_note(checkpoint, "2 more values are not kept"));
}

TEST(TorchWalk, StopsAtTheLimitOfTensors) {
  OpenOptions options;
  options.limits.max_tensors = 2;
  TorchZip zip;
  zip.object(py::list({one(), one(), one()})).record("0", test::raw<float>({0, 1, 2, 3, 4, 5}));
  EXPECT_ERROR(zip.open(options), Errc::limit, "too many tensors");
  options.limits.max_tensors = 3;
  EXPECT_EQ(zip.open(options).size(), 3u);
}

TEST(TorchWalk, RefusesListsThatLieInsideEachOtherDeeperThanPythonCouldWrite) {
  const auto nested = [](std::size_t depth) {
    return "\x80\x02" + std::string(depth, ']') + "K\x01" + std::string(depth, 'a') + ".";
  };
  EXPECT_EQ(test::open_text(nested(5'000)).values.size(), 1u);
  EXPECT_ERROR(test::open_text(nested(1'000'000)), Errc::limit, "deeper than 10000");
  EXPECT_EQ(test::open_text(nested(10'000)).values.size(), 1u);
  EXPECT_ERROR(test::open_text(nested(10'001)), Errc::limit, "deeper than 10000");
}

// Each of these pickles has some hundred kilobytes, and once took minutes or gigabytes. Sharing makes them small.
struct Bomb {
  const char* what;
  std::string pickle;
};

std::string repeated(std::size_t count, std::string_view ops) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += ops;
  return all;
}

std::vector<Bomb> bombs() {
  constexpr std::size_t kMany = 100'000;
  const Ops padding = "(" + repeated(20'000, "K\x01") + "l0";  // raises limits that depend on the objects
  const Ops long_text = py::text(std::string(65'000, 'a')) + "q" + std::string(1, '\0') + "0";
  const std::string get = std::string("h\0", 2);
  std::string chain = "}";
  for (int i = 0; i < 20'000; ++i) chain += py::text("a") + "K\x01s" + py::text("b") + "}";
  const Ops hooks = py::text("_a_hooks") + "q\x01" + "N" + repeated(kMany, "h\x01N");
  std::string state = "}(" + hooks;
  for (const char* key : {"_parameters", "_buffers", "_modules"}) state += py::text(key) + "}";
  const Ops encoded = py::call("_codecs", "encode", {py::text(std::string(60'000, 'a')), py::text("latin1")});
  const auto pickle = [](const std::string& ops) { return "\x80\x02" + ops + "."; };
  return {
      {"two lists of each list before", pickle("](K\x01K\x01"
                                               "e" +
                                               repeated(40, "2\x86"))},
      {"one long text as many values", pickle(padding + long_text + "](" + repeated(kMany, get) + "e")},
      {"one long text as many keys", pickle(padding + long_text + "}(" + repeated(kMany, get + "K\x01") + "u")},
      {"one long name on many paths", pickle(padding + "}" + py::text(std::string(65'000, 'a')) + "K\x01sq" +
                                             std::string(1, '\0') + "0](" + repeated(kMany, get) + "e")},
      {"a name that grows with each level", pickle(chain + std::string(20'000, 's'))},
      {"one module with many attributes of torch's own, many times",
       pickle(padding + "cm\nC\n)\x81" + state + "ubq" + std::string(1, '\0') + "0](" + repeated(kMany, get) + "e")},
      {"one key of encoded bytes, many times",
       pickle(padding + encoded + "q" + std::string(1, '\0') + "0}(" + repeated(kMany, get + "K\x01") + "u")},
      {"a class that is looked for in a long tuple, many times",
       pickle(padding + "(" + py::text("module") + repeated(kMany, "K\x01") + "tQq" + std::string(1, '\0') + "0](" +
              repeated(20'000, get + ")R") + "e")},
  };
}

TEST(TorchWalk, TakesTimeInProportionToTheFile) {
  for (const Bomb& bomb : bombs()) {
    SCOPED_TRACE(bomb.what);
    const double before = test::cpu_seconds();
    try {
      const Checkpoint checkpoint = test::open_text(bomb.pickle);
      EXPECT_LE(checkpoint.values.size(), Limits{}.max_values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::limit) << error.what();
    }
    EXPECT_LT(test::cpu_seconds() - before, 5);  // a mistake takes minutes, and sanitizers are slow
  }
}

TEST(TorchWalk, KeepsBytesThatManyArraysShareOnce) {
  const Ops dtype = py::call("numpy", "dtype", {py::text("u1"), integer(0), integer(1)});
  const Ops data = py::bytes(std::string(60'000, 'x'));
  std::string arrays = dtype +
                       "q\x01"
                       "0" +
                       data +
                       "q\x02"
                       "0](";
  for (int i = 0; i < 2'000; ++i) {
    arrays += py::build(py::call("numpy.core.multiarray", "_reconstruct",
                                 {py::global("numpy", "ndarray"), py::integers({0}), py::bytes("b")}),
                        py::tuple({integer(1), py::integers({60'000}), "h\x01", py::boolean(false), "h\x02"}));
  }
  const Checkpoint checkpoint = test::open_text("\x80\x03" + arrays + "e.");
  ASSERT_EQ(checkpoint.size(), 2'000u);
  EXPECT_EQ(checkpoint.at("0").storage(), checkpoint.at("1999").storage());
}

TEST(TorchWalk, OpensAFileInsideBytesOnceHoweverOftenItIsNamed) {
  const std::string inner = TorchZip().object(py::list({integer(1)})).text();
  const Ops bytes = py::put(py::bytes(inner), 3) + "0";
  const Ops load = py::call("torch.storage", "_load_from_bytes", {py::get(3)});
  std::string many = bytes + "](";
  for (int i = 0; i < 2'000; ++i) many += load;
  const double before = test::cpu_seconds();
  EXPECT_EQ(test::open_text("\x80\x03" + many + "e.").values.size(), 2'000u);
  EXPECT_LT(test::cpu_seconds() - before, 5);
}

}  // namespace
}  // namespace ballast
