// The whole object in a file: what it holds, what of it is a tensor, and which tensors it may not hold.
#include "checkpoint/objects.hpp"

#include <gtest/gtest.h>

#include <string>

#include "builders/safetensors_file.hpp"
#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using pickle::Kind;

torch::Objects objects_in(const std::string& file, const OpenOptions& options = {}) {
  return read_objects(test::source_of(file), options);
}

Kind root_of(const torch::Objects& objects) { return objects.graph->kind(objects.root); }

py::Ops tensor_of(const py::Ops& storage, std::int64_t count = 4) { return py::tensor(storage, 0, {count}, {1}); }
py::Ops four() { return py::storage("Float", "0", 4); }

std::string zip_of(const py::Ops& object) {
  return test::TorchZip().object(object).record("0", std::string(16, '\0')).text();
}

// A key: open() gives it no name, so that only the search for objects looks at it.
py::Ops hidden(const py::Ops& object) {
  return py::dict({{"w", tensor_of(four())}}) + py::tuple({object}) + py::none() + "s";
}

TEST(Objects, AreReadFromEveryContainerOfAPickle) {
  EXPECT_EQ(root_of(objects_in(zip_of(py::list({})))), Kind::list);
  EXPECT_EQ(root_of(objects_in(test::TorchStream().object(py::list({})).text())), Kind::list);
  EXPECT_EQ(root_of(objects_in(py::pickle(py::list({})))), Kind::list);
  const std::string nothing = py::pickle(py::integer(0));
  EXPECT_EQ(root_of(objects_in(test::TarFile()
                                   .file("sys_info", py::pickle(py::dict({{"little_endian", py::boolean(true)}})))
                                   .file("pickle", py::pickle(py::list({})))
                                   .file("tensors", nothing)
                                   .file("storages", nothing)
                                   .text())),
            Kind::list);
}

TEST(Objects, AreNotInFilesOfOtherFormats) {
  EXPECT_FALSE(objects_in(test::SafetensorsFile().tensor("w", "F32", {2}).text()).graph);
  EXPECT_FALSE(objects_in(test::ZipFile().stored("a.txt", "a").text()).graph);
}

TEST(Objects, HaveTensorsWhereverTheyAre) {
  EXPECT_EQ(objects_in(zip_of(tensor_of(four()))).tensors.size(), 1U);
  EXPECT_EQ(objects_in(zip_of(hidden(tensor_of(four())))).tensors.size(), 2U);
  EXPECT_EQ(objects_in(zip_of(hidden(four()))).tensors.size(), 2U) << "a bare storage";
  EXPECT_EQ(objects_in(zip_of(py::tuple({py::put(tensor_of(four()), 1), py::get(1)}))).tensors.size(), 1U) << "shared";
}

TEST(Objects, KeepATensorThatIsNotSupportedAsANode) {
  EXPECT_EQ(objects_in(zip_of(hidden(tensor_of(py::storage("Odd", "0", 4))))).tensors.size(), 1U);
}

TEST(Objects, AreRefusedWithATensorThatLiesWhereverItIs) {
  EXPECT_NO_THROW(test::open_text(zip_of(hidden(tensor_of(four(), 5)))));
  EXPECT_ERROR(objects_in(zip_of(hidden(tensor_of(four(), 5)))), Errc::malformed, "storage");
}

TEST(Objects, AreReadUnderTheLimitsAndTheSafetyOfTheCaller) {
  const std::string file = zip_of(py::call("pathlib", "PosixPath", {py::text("a")}));
  EXPECT_NO_THROW(objects_in(file));
  EXPECT_ERROR(objects_in(file, {.safety = Safety::strict}), Errc::unsafe, "pathlib.PosixPath");
  OpenOptions options;
  options.limits.max_rank = 0;
  EXPECT_ERROR(objects_in(zip_of(tensor_of(four())), options), Errc::malformed, "more than the 0 allowed");
}

}  // namespace
}  // namespace ballast
