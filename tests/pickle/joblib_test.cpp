// What lies raw behind a NumpyArrayWrapper of joblib's: how many bytes that is, or that nobody can tell.
#include "formats/pickle/joblib.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "builders/torch_file.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/pickle/scan.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using Attributes = std::vector<std::pair<std::string, py::Ops>>;

py::Ops dtype(const py::Ops& code) { return py::call("numpy", "dtype", {code, py::boolean(false), py::boolean(true)}); }
py::Ops dtype_of_state(const std::string& code, std::int64_t bytes, std::int64_t flags) {
  return py::build(dtype(py::text(code)), py::tuple({py::integer(3), py::text("|"), py::none(), py::none(), py::none(),
                                                     py::integer(bytes), py::integer(1), py::integer(flags)}));
}

std::string text_of(const py::Ops& wrapper_state) {
  const py::Ops wrapper = py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81";
  const std::string bytes = py::pickle(py::build(wrapper, wrapper_state), 4);
  pickle::Graph graph(test::source_of(bytes));
  std::vector<Error> ignored;
  const auto root = pickle::run_leniently(graph, 0, bytes.size(), {}, ignored, pickle::RawArrays::not_known).root;
  const auto array = pickle::raw_array_behind(graph, root);
  if (!array) return "nobody can tell";
  if (array->is_pickle) return "a pickle";
  return std::to_string(array->bytes) + (array->has_padding ? " bytes and a padding" : " bytes");
}

std::string text_of(const py::Ops& type, const py::Ops& shape, const Attributes& more = {}) {
  Attributes all = {{"dtype", type}, {"shape", shape}};
  all.insert(all.end(), more.begin(), more.end());
  return text_of(py::dict(all));
}

const py::Ops kFloat = dtype(py::text("f4")), kTwoByThree = py::integers({2, 3});

TEST(Joblib, SaysHowManyBytesLieBehindAWrapper) {
  EXPECT_EQ(text_of(kFloat, kTwoByThree), "24 bytes");
  EXPECT_EQ(text_of(kFloat, py::integers({0, 3})), "0 bytes");
  EXPECT_EQ(text_of(kFloat, py::tuple({})), "4 bytes");
  EXPECT_EQ(text_of(kFloat, kTwoByThree, {{"numpy_array_alignment_bytes", py::integer(16)}}), "24 bytes and a padding");
  EXPECT_EQ(text_of(kFloat, kTwoByThree, {{"numpy_array_alignment_bytes", py::none()}}), "24 bytes");
  EXPECT_EQ(text_of(dtype(py::text("<U5")), kTwoByThree), "120 bytes");
  EXPECT_EQ(text_of(dtype(py::text("?")), kTwoByThree), "6 bytes");
  EXPECT_EQ(text_of(dtype_of_state("V10", 10, 0), kTwoByThree), "60 bytes");
  EXPECT_EQ(text_of(dtype(py::text("O8")), kTwoByThree), "a pickle");
  EXPECT_EQ(text_of(dtype_of_state("V10", 10, 1), kTwoByThree), "a pickle");
  EXPECT_EQ(text_of(dtype(py::text("S1073741824")), py::integers({1})), "1073741824 bytes");
}

// joblib unpickles an array that has a field of objects. What is stepped over instead, nobody looks at.
TEST(Joblib, HidesNothingBehindAFieldOfObjects) {
  const py::Ops wrapper = py::build(py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81",
                                    py::dict({{"dtype", dtype_of_state("V10", 10, 1)}, {"shape", kTwoByThree}}));
  const std::string hidden = "N." + py::call("os", "system", {py::text("id")}) + "0";
  const std::string bytes = py::pickle(wrapper + hidden + std::string(60 - hidden.size(), '2'), 4);
  pickle::Scan scan;
  pickle::scan_pickles(test::source_of(bytes), 0, bytes.size(), "", {}, scan);
  EXPECT_TRUE(std::ranges::any_of(scan.globals, [](const Global& g) { return g.verdict == Verdict::dangerous; }));
}

TEST(Joblib, TellsOfNumbersThatAreAnAttackOnWhoeverReadsTheFileByPickleAlone) {
  const py::Ops wrapper = py::build(py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81",
                                    py::dict({{"dtype", kFloat}, {"shape", py::integers({6})}}));
  const std::string bytes = py::pickle(wrapper + "cos\nsystem\n(S'id'\ntR0222", 4);
  pickle::Scan scan;
  pickle::scan_pickles(test::source_of(bytes), 0, bytes.size(), "", {}, scan);
  EXPECT_TRUE(std::ranges::any_of(scan.globals, [](const Global& g) { return g.verdict == Verdict::dangerous; }));
  ASSERT_FALSE(scan.findings.empty());
  EXPECT_EQ(scan.findings[0].what, "the file can be read as a plain pickle, too");
}

// Whoever reads the file by pickle alone takes the numbers for instructions, and these do no harm.
TEST(Joblib, SaysNothingOfNumbersThatNameWhatIsKnown) {
  const py::Ops wrapper = py::build(py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81",
                                    py::dict({{"dtype", kFloat}, {"shape", py::integers({7})}}));
  const std::string bytes = py::pickle(wrapper + "ccollections\nOrderedDict\n000", 4);
  pickle::Scan scan;
  pickle::scan_pickles(test::source_of(bytes), 0, bytes.size(), "", {}, scan);
  EXPECT_TRUE(scan.findings.empty());
}

TEST(Joblib, KnowsAWrapperByItsClassAndNothingBehindOneWithoutAState) {
  const py::Ops wrapper = py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81";
  const std::string bytes = py::pickle(py::tuple({wrapper, py::integer(0)}), 4);  // the wrapper is object number 0
  pickle::Graph graph(test::source_of(bytes));
  const auto items = graph.item_list(pickle::run(graph, 0, bytes.size(), Limits{}).root);
  EXPECT_TRUE(pickle::is_array_wrapper(graph, items.at(0)));
  EXPECT_FALSE(pickle::is_array_wrapper(graph, items.at(1)));
  EXPECT_FALSE(pickle::raw_array_behind(graph, items.at(0)).has_value());
}

TEST(Joblib, TakesTheLastAttributeOfAName) {
  EXPECT_EQ(text_of(kFloat, kTwoByThree, {{"shape", py::integers({5})}}), "20 bytes");
}

TEST(Joblib, GuessesNoShape) {
  for (const py::Ops& shape : {py::none(), py::list({py::integer(2)}), py::text("ab"), py::integers({2, -1}),
                               py::tuple({py::real(2)}), py::tuple({py::boolean(true)}), py::integers({1LL << 62, 4}),
                               py::integers({1LL << 62, 2}), py::integers(std::vector<std::int64_t>(65, 1))})
    EXPECT_EQ(text_of(kFloat, shape), "nobody can tell");
  EXPECT_EQ(text_of(dtype(py::text("u1")), py::integers({-1})), "nobody can tell");
  EXPECT_EQ(text_of(kFloat, py::integers(std::vector<std::int64_t>(64, 1))), "4 bytes");
  EXPECT_EQ(text_of(py::dict({{"dtype", kFloat}})), "nobody can tell");
}

TEST(Joblib, GuessesNoElementType) {
  for (const py::Ops& type :
       {py::none(), py::text("f4"), dtype(py::integer(4)), dtype(py::text("")), dtype(py::text("<")),
        dtype(py::text("f")), dtype(py::text("fx")), dtype(py::text("f4x")), dtype(py::text("f99999999999999999999")),
        dtype(py::text("S1073741825")), py::call("numpy", "dtype", {}), py::call("model", "dtype", {py::text("f4")})})
    EXPECT_EQ(text_of(type, kTwoByThree), "nobody can tell");
  EXPECT_EQ(text_of(py::dict({{"shape", kTwoByThree}})), "nobody can tell");
  // The wrapper is object number 0 here, and the element type that is not meant is number 1.
  EXPECT_EQ(text_of(py::integer(1), kTwoByThree, {{"other", kFloat}}), "nobody can tell");
}

TEST(Joblib, BelievesNoStateOfAnElementTypeThatNumPyDoesNotWrite) {
  EXPECT_EQ(text_of(dtype_of_state("f4", -1, 0), kTwoByThree), "24 bytes");
  EXPECT_EQ(text_of(dtype_of_state("S5", 5, 0), kTwoByThree), "30 bytes");
  EXPECT_EQ(text_of(dtype_of_state("U5", 20, 8), kTwoByThree), "120 bytes");
  EXPECT_EQ(text_of(dtype_of_state("O8", -1, 63), kTwoByThree), "a pickle");
  for (const py::Ops& type :
       {dtype_of_state("f4", 4, 0), dtype_of_state("f4", -1, 1), dtype_of_state("S1", 100, 0),
        dtype_of_state("S5", 5, 1), dtype_of_state("U5", 5, 0), dtype_of_state("a5", 6, 0), dtype_of_state("V10", 9, 0),
        dtype_of_state("V10", 11, 1), py::build(dtype_of_state("V10", 10, 0), py::none()),
        py::build(dtype(py::text("f4")), py::none()), py::build(dtype(py::text("V10")), py::list({})),
        py::global("numpy", "dtype") + py::tuple({py::text("f4")}) + py::dict({}) + "\x92"})
    EXPECT_EQ(text_of(type, kTwoByThree), "nobody can tell");
}

TEST(Joblib, BelievesNoStateOfAnotherVersionOrLength) {
  const auto bytes_of = [](const std::vector<py::Ops>& state) {
    return text_of(py::build(dtype(py::text("V10")), py::tuple(state)), kTwoByThree);
  };
  const py::Ops n = py::none(), ten = py::integer(10), zero = py::integer(0);
  EXPECT_EQ(bytes_of({py::integer(3), n, n, n, n, ten, n, zero}), "60 bytes");
  EXPECT_EQ(bytes_of({py::integer(4), n, n, n, n, ten, n, zero, n}), "60 bytes");
  EXPECT_EQ(bytes_of({py::integer(2), n, n, n, n, ten, n, zero}), "nobody can tell");
  const std::vector<py::Ops> good = {py::integer(3), n, n, n, n, ten, n, zero};
  const py::Ops twice = py::build(py::build(dtype(py::text("V10")), py::tuple(good)), py::tuple(good));
  EXPECT_EQ(text_of(twice, kTwoByThree), "nobody can tell");
  EXPECT_EQ(text_of(py::build(dtype(py::text("V10")), py::list(good)), kTwoByThree), "nobody can tell");
  EXPECT_EQ(bytes_of({py::integer(3), n, n, n, n, ten, n}), "nobody can tell");
  EXPECT_EQ(bytes_of({py::integer(3), n, n, n, n, ten, n, zero, n, n}), "nobody can tell");
  for (const std::size_t other : {0U, 5U, 7U}) {
    std::vector<py::Ops> state = {py::integer(3), n, n, n, n, ten, n, zero};
    state[other] = py::text("a");
    EXPECT_EQ(bytes_of(state), "nobody can tell") << other;
  }
}

TEST(Joblib, LooksForAttributesInADictOfTheirNumber) {
  Attributes many(62, {"order", py::text("C")});
  EXPECT_EQ(text_of(kFloat, kTwoByThree, many), "24 bytes");
  many.emplace_back("order", py::text("C"));
  EXPECT_EQ(text_of(kFloat, kTwoByThree, many), "nobody can tell");
  EXPECT_EQ(text_of(py::none()), "nobody can tell");
  EXPECT_EQ(text_of(py::ordered_dict({{"dtype", kFloat}, {"shape", kTwoByThree}})), "nobody can tell");
  EXPECT_EQ(text_of(py::tuple({py::text("dtype"), kFloat, py::text("shape"), kTwoByThree})), "nobody can tell");
}

}  // namespace
}  // namespace ballast
