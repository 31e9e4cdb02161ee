// One subtree of a nested checkpoint as a checkpoint of its own.
#include <gtest/gtest.h>

#include "builders/torch_file.hpp"
#include "checkpoint/roots.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;

namespace py = test::py;

Checkpoint with_names(const std::vector<std::string>& names) {
  Checkpoint checkpoint;
  const float value = 1;
  for (const std::string& name : names)
    checkpoint.tensors.insert(name, Tensor::from_values<float>(DType::f32, {1}, {&value, 1}));
  return checkpoint;
}

using Names = std::vector<std::string>;

TEST(Roots, DropsThePrefixAndWhatLiesElsewhere) {
  Checkpoint checkpoint = with_names({"model.a", "model.b.c", "modelx", "model", "other.model.a"});
  EXPECT_EQ(names_of(take_root(checkpoint, "model")), (Names{"a", "b.c", ""}));
  EXPECT_EQ(names_of(take_root(checkpoint, "model.b")), Names{"c"});
}

TEST(Roots, KnowsTheSlashOfArchives) {
  EXPECT_EQ(names_of(take_root(with_names({"policy.pth/w", "policy.pthx/w"}), "policy.pth")), Names{"w"});
}

TEST(Roots, ListsTheRootsIfNothingLiesUnderAName) {
  Checkpoint checkpoint = with_names({"a.b"});
  EXPECT_ERROR(take_root(checkpoint, "model"), Errc::not_found, "no tensor lies below \"model\"");
  EXPECT_HINT(take_root(checkpoint, "model"), "the names are not nested");
  checkpoint.roots = {{"a", 1}};
  EXPECT_HINT(take_root(checkpoint, "model"), "there is \"a\"");
}

TEST(Roots, TakesValuesCompositesAndAliasesAlong) {
  Checkpoint checkpoint = with_names({"m.q", "m.tied", "n.q"});
  checkpoint.values = {{"m.lr", "float", 0.5}, {"epoch", "int", std::int64_t{3}}};
  Composite composite;
  composite.name = "m.q";
  composite.parts = {"m.q"};
  checkpoint.composites.push_back(composite);
  composite.name = "n.q";
  composite.parts = {"n.q"};
  checkpoint.composites.push_back(composite);
  checkpoint.aliases = {{"m.tied", "m.q"}, {"n.tied", "m.q"}};
  checkpoint.metadata = {{"m.tied", "m.q"}, {"n.tied", "m.q"}, {"format", "pt"}};
  const Checkpoint taken = take_root(checkpoint, "m");
  ASSERT_EQ(taken.values.size(), 1u);
  EXPECT_EQ(taken.values[0].path, "lr");
  ASSERT_EQ(taken.composites.size(), 1u);
  EXPECT_EQ(taken.composites[0].name, "q");
  EXPECT_EQ(taken.composites[0].parts, Names{"q"});
  EXPECT_EQ(taken.aliases.size(), 1u);
  EXPECT_EQ(taken.aliases.at("tied"), "q");
  EXPECT_EQ(taken.metadata.size(), 1u);
  EXPECT_TRUE(taken.roots.empty());
}

TEST(Roots, ComeTheLikeliestFirst) {
  Checkpoint checkpoint;
  checkpoint.roots = {{"optimizer", 9}, {"ema", 2}, {"other", 10}, {"state_dict", 1}, {"model", 5}};
  sort_roots(checkpoint);
  Names order;
  for (const Root& root : checkpoint.roots) order.push_back(root.path);
  EXPECT_EQ(order, (Names{"state_dict", "model", "ema", "other", "optimizer"}));
}

TEST(Roots, AreTakenWhenAFileIsOpened) {
  test::TorchZip zip;
  zip.object(py::dict({{"state_dict", py::dict({{"w", py::tensor(py::storage("Float", "0", 1), 0, {1}, {1})}})},
                       {"epoch", py::integer(1)}}))
      .record("0", test::raw<float>({1}));
  OpenOptions options;
  options.root = "state_dict";
  EXPECT_EQ(names_of(zip.open(options)), Names{"w"});
  options.root = "nothing";
  EXPECT_ERROR(zip.open(options), Errc::not_found, "no tensor lies below \"nothing\"");
}

}  // namespace
}  // namespace ballast
