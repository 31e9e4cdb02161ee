// Every spelling of a mapping, wherever a mapping can be: as a state dict, as the parts of a module, as values.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include <algorithm>

#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"
#include "support/cpu_time.hpp"
#include "support/peak_memory.hpp"
#include "support/tensor_values.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::call;
using py::dict;
using py::global;
using py::integer;
using py::Ops;
using py::text;
using test::names_of;
using Names = std::vector<std::string>;

Ops element() { return py::tensor(py::storage("Float", "0", 1), 0, {1}, {1}); }

Checkpoint open_mapping(const Ops& object) {
  return test::TorchZip().object(object).record("0", test::raw<float>({1})).open();
}

Names paths_of(const Checkpoint& checkpoint) {
  Names paths;
  for (const PlainValue& value : checkpoint.values) paths.push_back(value.path);
  return paths;
}

struct Spelling {
  std::string what;
  Ops ops;  // {"a": first, "b": second}
};

std::vector<Spelling> spellings(const Ops& first, const Ops& second) {
  const Ops lists = py::list({py::list({text("a"), first}), py::list({text("b"), second})});
  const Ops tuples = py::list({py::tuple({text("a"), first}), py::tuple({text("b"), second})});
  const Ops tuple = py::tuple({py::tuple({text("a"), first}), py::list({text("b"), second})});
  const Ops items = py::pairs({{text("a"), first}, {text("b"), second}});
  const Ops plain = dict({{"a", first}, {"b", second}});
  const Ops one_by_one = text("a") + first + "s" + text("b") + second + "s";
  const Ops half = py::list({py::list({text("a"), first})});
  const auto reconstructed = [](std::string_view base_module, std::string_view base, const Ops& state) {
    return call("copy_reg", "_reconstructor", {global("my.module", "Config"), global(base_module, base), state});
  };
  return {
      {"a dict", plain},
      {"a dict by single items", "}" + one_by_one},
      {"a dict from a mark", "(" + text("a") + first + text("b") + second + "d"},
      {"OrderedDict of lists", call("collections", "OrderedDict", {lists})},
      {"OrderedDict of tuples", call("collections", "OrderedDict", {tuples})},
      {"OrderedDict of a tuple", call("collections", "OrderedDict", {tuple})},
      {"OrderedDict of a dict", call("collections", "OrderedDict", {plain})},
      {"OrderedDict of an OrderedDict",
       call("collections", "OrderedDict", {call("collections", "OrderedDict", {lists})})},
      {"OrderedDict filled later", call("collections", "OrderedDict", {}) + items},
      {"OrderedDict given a half", call("collections", "OrderedDict", {half}) + text("b") + second + "s"},
      {"OrderedDict made by NEWOBJ", global("collections", "OrderedDict") + ")\x81" + items},
      {"dict called with pairs", call("__builtin__", "dict", {tuples})},
      {"dict called with names", global("builtins", "dict") + ")" + plain + "\x92"},
      {"dict called with a list that is called", call("builtins", "dict", {call("builtins", "list", {tuples})})},
      {"defaultdict filled later", call("collections", "defaultdict", {global("builtins", "list")}) + items},
      {"defaultdict of a dict", call("collections", "defaultdict", {global("builtins", "list"), plain})},
      {"defaultdict of pairs", call("collections", "defaultdict", {py::none(), lists})},
      {"Counter", call("collections", "Counter", {plain})},
      {"a view of a dict", call("types", "MappingProxyType", {plain})},
      {"a subclass of dict", global("my.module", "Config") + ")\x81" + items},
      {"a subclass of OrderedDict in Python 2", call("my.module", "FrozenDict", {lists})},
      {"a subclass of dict in protocol 0", reconstructed("__builtin__", "dict", plain)},
      {"a subclass of OrderedDict in protocol 0",
       reconstructed("collections", "OrderedDict", call("collections", "OrderedDict", {lists}))},
      {"__newobj__ by its name", call("copyreg", "__newobj__", {global("collections", "OrderedDict"), tuples})},
      {"__newobj_ex__ by its name",
       call("copyreg", "__newobj_ex__", {global("collections", "OrderedDict"), py::tuple({tuples}), "}"})},
  };
}

TEST(TorchMapping, OfAnySpellingIsAStateDict) {
  for (const auto& [what, ops] : spellings(element(), element()))
    EXPECT_EQ(names_of(open_mapping(ops)), (Names{"a", "b"})) << what;
}

TEST(TorchMapping, OfAnySpellingGivesItsValues) {
  for (const auto& [what, ops] : spellings(integer(1), integer(2)))
    EXPECT_EQ(paths_of(open_mapping(dict({{"x", ops}}))), (Names{"x.a", "x.b"})) << what;
}

TEST(TorchMapping, OfAnySpellingIsAPartOfAModule) {
  for (const auto& [what, ops] : spellings(element(), py::none())) {
    const Ops empty = call("collections", "OrderedDict", {py::list({})});
    const Ops inner = py::build(global("my", "Net") + ")\x81",
                                dict({{"_parameters", ops}, {"_buffers", empty}, {"_modules", empty}}));
    EXPECT_EQ(names_of(open_mapping(inner)), Names{"a"}) << what;
    const Ops modules = call("collections", "OrderedDict", {py::list({py::list({text("m"), inner})})});
    const Ops outer = py::build(global("my", "Net") + ")\x81",
                                dict({{"_parameters", empty}, {"_buffers", ops}, {"_modules", modules}}));
    EXPECT_EQ(names_of(open_mapping(outer)), (Names{"a", "m.a"})) << what;
  }
}

TEST(TorchMapping, OfAnySpellingIsTheStateOfAnObject) {
  for (const auto& [what, ops] : spellings(element(), element()))
    EXPECT_EQ(names_of(open_mapping(py::build(global("my", "Thing") + ")\x81", ops))), (Names{"a", "b"})) << what;
}

TEST(TorchMapping, ListsItemsThatAreNotPairs) {
  const Ops odd = py::list({py::list({text("a"), element()}), integer(3), element()});
  const Checkpoint checkpoint = open_mapping(call("collections", "OrderedDict", {odd}));
  EXPECT_EQ(names_of(checkpoint), (Names{"a", "<arg0>.2"}));
  EXPECT_EQ(paths_of(checkpoint), Names{"<arg0>.1"});
}

TEST(TorchMapping, ListsTheOtherArgumentsOfAClassThatIsADictOnlyByName) {
  const Checkpoint checkpoint = open_mapping(call("my", "EasyDict", {dict({{"a", element()}}), element(), integer(1)}));
  EXPECT_EQ(names_of(checkpoint), (Names{"<arg1>", "a"}));
  EXPECT_EQ(names_of(open_mapping(call("my", "edict", {py::list({element()})}))), Names{"<arg0>.0"});
}

TEST(TorchMapping, ListsTheAttributesOfAnOrderedDictButForTheVersionsOfModules) {
  const Ops state = dict({{"_metadata", dict({{"", integer(1)}})}, {"extra", element()}});
  const Checkpoint checkpoint = open_mapping(py::build(py::ordered_dict({{"w", element()}}), state));
  EXPECT_EQ(names_of(checkpoint), (Names{"w", "extra"}));
  EXPECT_TRUE(checkpoint.values.empty());
}

TEST(TorchMapping, FindsTensorsInSetsAndSubclassesOfLists) {
  EXPECT_EQ(names_of(open_mapping(call("builtins", "set", {py::list({element(), element()})}))), (Names{"0", "1"}));
  EXPECT_EQ(names_of(open_mapping("\x8f(" + element() + "\x90")), Names{"0"});
  const Ops list = call("copy_reg", "_reconstructor",
                        {global("my", "Layers"), global("__builtin__", "list"), py::list({element()})});
  EXPECT_EQ(names_of(open_mapping(list)), Names{"0"});
  const Ops number =
      call("copy_reg", "_reconstructor", {global("my", "Rate"), global("__builtin__", "float"), py::real(0.5)});
  EXPECT_EQ(paths_of(open_mapping(number)), Names{"<arg2>"});
}

TEST(TorchMapping, SaysWhichBuffersAStateDictWouldNotHave) {
  const auto net = [](const Ops& buffers, const Ops& hidden) {
    return py::build(
        global("my", "Net") + ")\x81",
        dict(
            {{"_parameters", "}"}, {"_buffers", buffers}, {"_modules", "}"}, {"_non_persistent_buffers_set", hidden}}));
  };
  const Ops set = call("__builtin__", "set", {py::list({text("inv_freq")})});
  const Checkpoint one_module = open_mapping(net(dict({{"inv_freq", element()}, {"mean", element()}}), set));
  EXPECT_EQ(names_of(one_module), Names{"mean"});
  EXPECT_TRUE(
      test::has_note(one_module, "a buffer is not in the state_dict() of its module and left out: \"inv_freq\""));

  std::vector<Ops> layers(7, net(dict({{"inv_freq", element()}}), "\x8f(" + text("inv_freq") + "\x90"));
  const Checkpoint seven = open_mapping(py::list(layers));
  EXPECT_TRUE(test::has_note(seven,
                             "7 buffers are not in the state_dict() of their modules and left out: "
                             "\"0.inv_freq\", \"1.inv_freq\", \"2.inv_freq\", \"3.inv_freq\", "
                             "\"4.inv_freq\" and 2 more"));
}

// torch's own state_dict() has them as numbers, in the order of the groups.
TEST(TorchMapping, GivesTheStatesOfAnOptimizerTheNumbersOfTheirParameters) {
  const Ops parameter = call("torch._utils", "_rebuild_parameter", {element(), py::boolean(true), py::ordered_dict()});
  const auto average = dict({{"exp_avg", element()}});
  const Ops groups = py::list({dict({{"params", py::list({py::put(parameter, 50), py::put(parameter, 51)})}}),
                               dict({{"lr", py::real(0.1)}, {"params", py::list({py::put(parameter, 52)})}})});
  const Ops state = call("collections", "defaultdict", {global("builtins", "dict")}) +
                    py::pairs({{py::get(52), average}, {py::get(50), average}, {text("step"), integer(4)}});
  for (const bool is_object : {true, false}) {
    const Ops attributes = dict({{"param_groups", groups}, {"state", state}});
    const Ops optimizer = is_object ? py::build(global("torch.optim.adam", "Adam") + ")\x81", attributes) : attributes;
    const Checkpoint checkpoint = open_mapping(dict({{"optimizer", optimizer}}));
    EXPECT_EQ(names_of(checkpoint),
              (Names{"optimizer.param_groups.0.params.0", "optimizer.param_groups.0.params.1",
                     "optimizer.param_groups.1.params.0", "optimizer.state.2.exp_avg", "optimizer.state.0.exp_avg"}));
    EXPECT_EQ(paths_of(checkpoint), (Names{"optimizer.param_groups.1.lr", "optimizer.state.step"}));
  }
}

TEST(TorchMapping, OpensTheFoundModules) {
  for (const char* name : {"module_py2.pkl", "module_py3.pkl"})
    EXPECT_EQ(names_of(open(test::vector_path(std::string("found/") + name))), Names{"model.w"}) << name;
  for (const char* name : {"od_list.pkl", "od_tuple.pkl"})
    EXPECT_EQ(paths_of(open(test::vector_path(std::string("found/") + name))), (Names{"x.a", "x.b"})) << name;
}

std::string many(std::size_t count, std::string_view ops) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += ops;
  return all;
}

// Many references lead to one long object: looking into it each time would take minutes.
TEST(TorchMapping, TakesTimeInProportionToTheFile) {
  constexpr std::size_t kMany = 100'000;
  const std::string get("h\0", 2), put = std::string("q\0", 2) + "0";
  const Ops pair = py::tuple({text("a"), integer(1)});
  const Ops pairs = "](" + many(kMany, "K\1K\1\x86") + "e" + put;
  const Ops group = "}(" + many(kMany, "K\1K\1") + "u" + put;
  const std::string bombs[] = {
      pairs + "](" + many(kMany, global("m", "ADict") + get + "\x85R") + "e",
      group + dict({{"state", py::pairs({}) + "}" + py::pairs({{element(), integer(1)}})}}) + "0" +
          dict({{"state", "}" + py::pairs({{call("m", "P", {}), integer(1)}})},
                {"param_groups", "](" + many(kMany, get) + "e"}}),
      "\x8f(" + many(kMany, "K\1") + "\x90" + put + "](" + many(kMany, get) + "e",
  };
  for (const std::string& bomb : bombs) {
    const double before = test::cpu_seconds();
    try {
      EXPECT_LE(test::open_text("\x80\x04" + bomb + ".").values.size(), Limits{}.max_values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::limit) << error.what();
    }
    EXPECT_LT(test::cpu_seconds() - before, 20);  // a fraction of a second, or some seconds with a sanitizer
  }
}

TEST(TorchMemory, APickleOfNumbersTakesAtMostEightTimesItsBytes) {
  constexpr std::size_t kBytes = 10'000'000;
  const test::TempDir folder;
  const std::string one_list = "]", two_ints = "K\1K\2", real("G\x3f\xf1\x99\x99\x99\x99\x99\x9a");
  struct Case {
    const char* what;
    std::string first, item, last;
  };
  for (const Case& each :
       {Case{"small integers", "](", "K\7", "e"}, Case{"integers of two bytes", "](", "M\7\7", "e"},
        Case{"integers of four bytes", "](", "J\1\1\1\1", "e"},
        Case{"integers of eight bytes", "](", "\x8a\7\1\1\1\1\1\1\1", "e"}, Case{"floats", "](", real, "e"},
        Case{"booleans", "](", "\x88\x89", "e"}, Case{"a tuple", "(", "K\7", "t"},
        Case{"one after the other", "]", "K\7a", ""}, Case{"pairs", "](", "K\7K\7\x86\x94", "e"},
        Case{"lists of one", "](", "]\x94K\7a", "e"}, Case{"lists of three", "](", "]\x94(K\7K\7K\7e", "e"},
        Case{"a dict", "}(", "M\7\7K\7", "u"}, Case{"texts", "](", "\x8c\x0fxxxxxxxxxxxxxxx\x94", "e"},
        Case{"a set", "\x8f(", "K\7", "\x90"}, Case{"protocol 0", "(l", "I7\na", ""}}) {
    const std::string path =
        folder.write("n.pkl", "\x80\x04" + each.first + many(kBytes / each.item.size(), each.item) + each.last + ".");
    EXPECT_LE(test::peak_memory_of([&] { static_cast<void>(open(path)); }), 8 * kBytes) << each.what;
  }
}

}  // namespace
}  // namespace ballast
