// Calls with too few arguments, or with none: every function that rebuilds a tensor says so, and reads nothing that is
// not there.
#include "formats/torch/arguments.hpp"

#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/torch_file.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/types.hpp"
#include "formats/torch/walk_budget.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using Given = std::vector<py::Ops>;

Checkpoint opened(const py::Ops& object) {
  test::TorchZip zip;
  zip.object(py::dict({{"x", object}})).record("0", std::string(24, '\0')).record("1", std::string(24, '\0'));
  return zip.open();
}

py::Ops floats() { return py::storage("Float", "0", 6); }
py::Ops vector() { return py::tensor(floats(), 0, {2}, {1}); }
py::Ops whole_numbers(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  return py::tensor(py::storage("Long", "1", 3), 0, shape, strides);
}

TEST(Arguments, AreReadOnlyIfTheyAreThere) {
  pickle::Graph graph(test::source_of(py::pickle(py::tuple({py::integer(1)}))));
  const auto root = pickle::run(graph, 0, graph.source()->size_bytes(), Limits{}).root;
  const torch::Arguments arguments(graph, root, "f");
  EXPECT_EQ(arguments.integer(0, "a"), 1);
  EXPECT_ERROR(arguments.integer(1, "b"), Errc::malformed, "takes 2 arguments, but has 1");
  EXPECT_ERROR(arguments.real(1, "b"), Errc::malformed, "takes 2 arguments, but has 1");
  EXPECT_EQ(torch::callee_of(graph, pickle::kNoNode), std::nullopt);
}

// With all of its arguments a call opens; with `least` of them it may; with fewer it is an error, or left out with a
// note.
void expect_at_least(std::size_t least, const std::function<py::Ops(const Given&)>& call, const Given& all) {
  EXPECT_NO_THROW(opened(call(all)));
  for (std::size_t count = 0; count < least; ++count) {
    SCOPED_TRACE(count);
    Checkpoint checkpoint;
    const auto error = test::error_of(
        [&] { checkpoint = opened(call(Given(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)))); });
    if (error) {
      EXPECT_EQ(error->code(), Errc::malformed) << error->what();
    } else {
      EXPECT_TRUE(test::has_note(checkpoint, "\"x\" is left out")) << count;
    }
  }
}

std::function<py::Ops(const Given&)> function(const char* name) {
  return [=](const Given& given) { return py::rebuild(name, given); };
}

TEST(TorchArguments, OfATensorAreFour) {
  const Given view = {floats(), py::integer(0), py::integers({2}), py::integers({1})};
  expect_at_least(4, function("_rebuild_tensor"), view);
  expect_at_least(4, function("_rebuild_tensor_v2"), view);
  expect_at_least(4, function("_rebuild_tensor_v3"), view);
  expect_at_least(
      4, [](const Given& given) { return py::build(py::call("torch", "FloatTensor", {}), py::tuple(given)); }, view);
}

TEST(TorchArguments, OfAQuantizedTensorAreFiveAndThoseOfItsQuantizer) {
  const auto quantized = [](const py::Ops& quantizer) {
    return Given{py::storage("QInt8", "0", 24), py::integer(0), py::integers({6}), py::integers({1}), quantizer};
  };
  const Given per_tensor = {py::global("torch", "per_tensor_affine"), py::real(0.5), py::integer(0)};
  const Given per_channel = {py::global("torch", "per_channel_affine"), py::tensor(floats(), 0, {6}, {1}),
                             py::tensor(floats(), 0, {6}, {1}), py::integer(0)};
  const auto of = [&](const Given& given) { return py::rebuild("_rebuild_qtensor", quantized(py::tuple(given))); };
  expect_at_least(5, function("_rebuild_qtensor"), quantized(py::tuple(per_tensor)));
  expect_at_least(3, of, per_tensor);
  expect_at_least(4, of, per_channel);
}

TEST(TorchArguments, OfASparseTensorAreItsLayoutAndItsParts) {
  const auto layout = [](const char* name) { return py::call("torch.serialization", "_get_layout", {py::text(name)}); };
  const auto of = [&](const char* name) {
    return [=](const Given& given) { return py::rebuild("_rebuild_sparse_tensor", {layout(name), py::tuple(given)}); };
  };
  const Given coo = {whole_numbers({1, 2}, {2, 1}), vector(), py::integers({4})};
  const Given csr = {whole_numbers({2}, {1}), whole_numbers({2}, {1}), vector(), py::integers({4, 4})};
  expect_at_least(2, function("_rebuild_sparse_tensor"), {layout("torch.sparse_coo"), py::tuple(coo)});
  expect_at_least(3, of("torch.sparse_coo"), coo);
  expect_at_least(4, of("torch.sparse_csr"), csr);
}

TEST(TorchArguments, OfOtherTensorsMustAllBeThere) {
  expect_at_least(4, function("_rebuild_nested_tensor"),
                  {vector(), whole_numbers({0, 1}, {1, 1}), whole_numbers({0, 1}, {1, 1}), whole_numbers({0}, {1})});
  expect_at_least(1, function("_rebuild_parameter"), {vector(), py::boolean(true), py::ordered_dict()});
  expect_at_least(2, function("_rebuild_meta_tensor_no_storage"), {py::global("torch", "float32"), py::integers({2})});
  expect_at_least(3, function("_rebuild_wrapper_subclass"),
                  {py::global("model", "Wrapper"), py::global("torch", "float32"), py::integers({2})});
  const auto from_type = [](const Given& given) { return py::call("torch._tensor", "_rebuild_from_type_v2", given); };
  expect_at_least(3, from_type,
                  {py::global("torch._utils", "_rebuild_tensor_v2"), py::global("torch", "Tensor"),
                   py::tuple({floats(), py::integer(0), py::integers({2}), py::integers({1})}), py::dict({})});
  expect_at_least(1,
                  [](const Given& given) {
                    return py::rebuild("_rebuild_tensor_v2",
                                       {floats(), py::integer(0), py::call("torch", "Size", given), py::integers({1})});
                  },
                  {py::integers({2})});
}

TEST(TorchArguments, OfAStorageAreFive) {
  const auto of = [](const Given& id) { return py::tensor(py::persistent(id), 0, {2}, {1}); };
  expect_at_least(
      5, of,
      {py::text("storage"), py::global("torch", "FloatStorage"), py::text("0"), py::text("cpu"), py::integer(6)});
  EXPECT_ERROR(opened(of({py::bytes("storage"), py::global("torch", "FloatStorage"), py::text("0"), py::text("cpu"),
                          py::integer(6)})),
               Errc::malformed, "the first argument is no storage");
  EXPECT_ERROR(opened(of({py::text("storage"), py::global("torch", "FloatStorage"), py::text(std::string(70'000, '0')),
                          py::text("cpu"), py::integer(6)})),
               Errc::malformed, "is 70000 bytes long");
}

TEST(TorchArguments, OfArraysOfNumPyMustAllBeThere) {
  const py::Ops dtype = py::call("numpy", "dtype", {py::text("u1")});
  expect_at_least(4, [](const Given& given) { return py::call("numpy.core.numeric", "_frombuffer", given); },
                  {py::bytes("ab"), dtype, py::integers({2}), py::text("C")});
  for (const Given& given : {Given{}, Given{dtype}, Given{dtype, py::bytes("a")}})
    EXPECT_NO_FATAL_FAILURE(
        static_cast<void>(test::error_of([&] { opened(py::call("numpy.core.multiarray", "scalar", given)); })));
}

// A legacy tensor that was never given its state is used as a part of another tensor.
TEST(TorchArguments, OfATensorWithoutAStateAreMissing) {
  const py::Ops nothing = py::call("torch", "FloatTensor", {});
  EXPECT_ERROR(opened(py::rebuild("_rebuild_sparse_tensor", {py::global("torch", "sparse_coo"),
                                                             py::tuple({nothing, vector(), py::integers({4})})})),
               Errc::malformed, "FloatTensor: has no arguments");
}

struct Root {
  explicit Root(const py::Ops& object) : graph(test::source_of(py::pickle(object, 4))) {
    node = pickle::run(graph, 0, graph.source()->size_bytes(), {}).root;
  }
  pickle::Graph graph;
  pickle::NodeId node;
};

py::Ops made_of(const Given& id) { return py::persistent(id) + ")\x81"; }

TEST(TorchCalls, OfAClassWithItsSourceNameTheClass) {
  const auto name_of = [](const py::Ops& object) {
    const Root root(object);
    const auto callee = torch::callee_of(root.graph, root.node);
    return callee ? std::string(callee->name) : "";
  };
  const py::Ops net = py::global("model", "Net");
  EXPECT_EQ(name_of(net + ")\x81"), "Net");
  EXPECT_EQ(name_of(made_of({py::text("module"), net, py::text("model.py"), py::text("source")})), "Net");
  EXPECT_EQ(name_of(py::text("module") + "Q)\x81"), "");
  EXPECT_EQ(name_of(py::list({net}) + "Q)\x81"), "");
  Given many(7, py::none());
  many.push_back(net);
  EXPECT_EQ(name_of(made_of(many)), "Net");
  many.insert(many.begin(), py::none());
  EXPECT_EQ(name_of(made_of(many)), "");
  EXPECT_EQ(name_of(py::integer(1)), "");
}

TEST(TorchCalls, OfTheReconstructorKeepTheirArguments) {
  const py::Ops net = py::global("model", "Net");
  const auto argument = [](const py::Ops& object, std::size_t i) {
    const Root root(object);
    const torch::Construction made = torch::construction_of(root.graph, root.node);
    const pickle::NodeId node = made.argument(root.graph, i);
    return node == pickle::kNoNode                          ? std::string("none")
           : root.graph.kind(node) == pickle::Kind::integer ? "integer"
                                                            : "other";
  };
  const auto call = [](const char* name, const Given& given) { return py::call("copyreg", name, given); };
  EXPECT_EQ(argument(call("__newobj__", {net, py::integer(1)}), 0), "integer");
  EXPECT_EQ(argument(call("__newobj__", {net}), 0), "none");
  EXPECT_EQ(argument(call("__newobj_ex__", {net, py::tuple({py::integer(1)}), py::dict({})}), 0), "integer");
  EXPECT_EQ(argument(call("__newobj_ex__", {net, py::list({py::integer(1)}), py::dict({})}), 0), "none");
  for (const char* name : {"__newobj__", "__newobj_ex__", "_reconstructor"})
    EXPECT_EQ(argument(call(name, {}), 0), "none");
  EXPECT_EQ(argument(py::integer(1), 0), "none");
}

TEST(TorchCalls, AreRecognisedByTheirModuleToo) {
  EXPECT_TRUE((torch::Callee{"torch.storage", "_load_from_bytes"}.is("torch.storage", "_load_from_bytes")));
  EXPECT_FALSE((torch::Callee{"model", "_load_from_bytes"}.is("torch.storage", "_load_from_bytes")));
}

TEST(TorchTypes, AreThoseOfTorch) {
  EXPECT_TRUE(torch::storage_class("torch.cuda", "FloatStorage"));
  EXPECT_FALSE(torch::storage_class("torchlike", "FloatStorage"));
  EXPECT_FALSE(torch::storage_class("torch", "FloatStorehouse"));
  EXPECT_FALSE(torch::storage_class("torch", "FloatSttrage"));
  EXPECT_EQ(torch::dtype_global("torch", "float32"), DType::f32);
  EXPECT_EQ(torch::dtype_global("model", "float32"), std::nullopt);
  EXPECT_EQ(torch::dtype_global("torch", ""), std::nullopt);
}

TEST(TorchWalkBudget, IsSpentToTheLastStepAndByte) {
  const Root root(py::list({py::integer(1), py::integer(2)}));
  const std::uint64_t steps = 16 * (std::uint64_t{root.graph.size()} + root.graph.link_count()) + 10'000;
  const std::uint64_t bytes = 16 * root.graph.source()->size_bytes() + (std::uint64_t{4} << 20);
  torch::WalkBudget budget(root.graph);
  EXPECT_ERROR(budget.spend_steps(steps + 1), Errc::limit, "reached by too many paths");
  EXPECT_ERROR(budget.spend_bytes(bytes + 1), Errc::limit, "reached by too many paths");
  EXPECT_NO_THROW(budget.spend_steps(steps));
  EXPECT_NO_THROW(budget.spend_bytes(bytes));
  EXPECT_ERROR(budget.spend_steps(1), Errc::limit, "reached by too many paths");
  EXPECT_ERROR(budget.spend_bytes(1), Errc::limit, "reached by too many paths");
}

}  // namespace
}  // namespace ballast
