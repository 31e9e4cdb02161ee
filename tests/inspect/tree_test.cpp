// The tree of the prefixes of names.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include <ballast/listing.hpp>
#include <ballast/transform.hpp>
#include <ballast/tree.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::SafetensorsFile;
using Lines = std::vector<std::string>;

// Each node as "  name tensors bytes", with "xN" if it stands for several prefixes.
Lines lines_of(const Tree& tree) {
  Lines lines;
  for (const TreeNode& node : tree.nodes) {
    lines.push_back(std::string(2 * node.depth, ' ') + std::string(node.name()) +
                    (node.folded > 1 ? " x" + std::to_string(node.folded) : "") + " " + std::to_string(node.tensors) +
                    " " + std::to_string(node.bytes));
  }
  return lines;
}

Checkpoint named(const std::vector<std::string>& names) {
  SafetensorsFile file;
  for (const std::string& name : names) file.tensor(name, "U8", {1});
  return file.open();
}

TEST(Tree, FoldsLayersOfOneKind) {
  SafetensorsFile file;
  file.tensor("model.embed.weight", "F32", {10});
  for (int i = 0; i < 12; ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    file.tensor(layer + ".mlp.up", "BF16", {4, 2}).tensor(layer + ".mlp.down", "BF16", {4, 2});
    file.tensor(layer + ".norm.weight", "F32", {1});
  }
  EXPECT_EQ(lines_of(tree_of(file.open())), (Lines{
                                                "model 37 472",
                                                "  embed.weight 1 40",
                                                "  layers.{0..11} x12 36 432",
                                                "    mlp 24 384",
                                                "      down 12 192",
                                                "      up 12 192",
                                                "    norm.weight 12 48",
                                            }));
  EXPECT_EQ(lines_of(tree_of(file.open(), {.depth = 2})),
            (Lines{"model 37 472", "  embed.weight 1 40", "  layers.{0..11} x12 36 432"}));
  EXPECT_EQ(lines_of(tree_of(file.open(), {.sort = SortBy::bytes, .depth = 2})),
            (Lines{"model 37 472", "  layers.{0..11} x12 36 432", "  embed.weight 1 40"}));
}

TEST(Tree, KeepsLayersOfOtherKindsApart) {
  SafetensorsFile file;
  for (const int i : {0, 1, 2, 4}) file.tensor("l." + std::to_string(i) + ".w", "F32", {2});
  file.tensor("l.3.w", "BF16", {2}).tensor("l.5.w", "F32", {3}).tensor("l.6.v", "F32", {2});
  EXPECT_EQ(lines_of(tree_of(file.open())), (Lines{
                                                "l 7 56",
                                                "  {0..2,4}.w x4 4 32",
                                                "  3.w 1 4",
                                                "  5.w 1 12",
                                                "  6.v 1 8",
                                            }));
}

TEST(Tree, FoldsInsideFolds) {
  SafetensorsFile file;
  for (int layer = 0; layer < 3; ++layer)
    for (int expert = 0; expert < (layer == 2 ? 8 : 4); ++expert)
      for (const char* what : {"up", "down"})
        file.tensor("l." + std::to_string(layer) + ".e." + std::to_string(expert) + "." + what, "U8", {2});
  EXPECT_EQ(lines_of(tree_of(file.open())), (Lines{
                                                "l 32 64",
                                                "  {0..1}.e.{0..3} x8 16 32",
                                                "    down 8 16",
                                                "    up 8 16",
                                                "  2.e.{0..7} x8 16 32",
                                                "    down 8 16",
                                                "    up 8 16",
                                            }));
}

TEST(Tree, FoldsNumbersAfterAnUnderscoreAndNoOthers) {
  EXPECT_EQ(lines_of(tree_of(named({"enc/layer_0/w", "enc/layer_1/w", "enc/layer_10/w", "w1", "w2", "00", "01"}))),
            (Lines{"00 1 1", "01 1 1", "enc/layer_{0..1,10}/w x3 3 3", "w1 1 1", "w2 1 1"}));
}

TEST(Tree, HasPathsThatAreGlobs) {
  SafetensorsFile file;
  for (const int i : {0, 1, 2, 9, 10, 12}) file.tensor("m.l." + std::to_string(i) + ".w", "F32", {2});
  const Checkpoint checkpoint = file.tensor("m.b", "U8", {1}).open();
  for (const TreeNode& node : tree_of(checkpoint).nodes) {
    const std::string glob = node.dtype.empty() ? node.path + ".*" : node.path;
    EXPECT_EQ(select(checkpoint, {.include = {glob}}).size(), node.tensors) << glob;
  }
}

TEST(Tree, TakesNamesAsTheyAre) {
  EXPECT_EQ(lines_of(tree_of(named({"", ".", "a", "a.b", "a.b.c", "a..b", "a.", "x/y", "x.y", "x/z"}))),
            (Lines{
                " 2 2",
                "   1 1",
                "a 5 5",
                "   2 2",
                "    b 1 1",
                "  b 2 2",
                "    c 1 1",
                "x 3 3",
                "  y 1 1",
                "  y 1 1",
                "  z 1 1",
            }));
  const Tree tree = tree_of(named({"a-b", "a", "a.b", "a.c"}));
  EXPECT_EQ(lines_of(tree), (Lines{"a 3 3", "  b 1 1", "  c 1 1", "a-b 1 1"}));
  EXPECT_EQ(tree.nodes[0].dtype, "U8") << "a tensor and a prefix";
  EXPECT_EQ(tree.nodes[0].children, 2u);
  EXPECT_EQ(tree.nodes[1].path, "a.b");
  EXPECT_TRUE(tree_of(Checkpoint{}).nodes.empty());
}

TEST(Tree, DoesNotFoldWhatHasOtherSeparators) {
  EXPECT_EQ(lines_of(tree_of(named({"a.0", "a.1", "a/2", "a/3"}))),
            (Lines{"a 4 4", "  {0..1} x2 2 2", "  {2..3} x2 2 2"}));
}

TEST(Tree, CountsSharedBytesOnce) {
  const Checkpoint checkpoint = SafetensorsFile().metadata({{"head", "emb"}}).tensor("emb", "F32", {4}).open();
  const Tree tree = tree_of(checkpoint);
  ASSERT_EQ(tree.nodes.size(), 2u);
  EXPECT_EQ(tree.totals.bytes, 16u);
  EXPECT_EQ(tree.totals.parameters, 4u);
  EXPECT_EQ(tree.nodes[0].bytes, 16u);
  EXPECT_EQ(tree.nodes[1].bytes, 0u);
  EXPECT_EQ(tree.nodes[1].shared_bytes, 16u);
  const std::vector<std::size_t> head = {1};
  EXPECT_EQ(tree_of(checkpoint, head).nodes[0].bytes, 16u);
}

TEST(Tree, SortsSiblings) {
  const Checkpoint checkpoint =
      SafetensorsFile().tensor("a", "F64", {2}).tensor("b", "U8", {8}).tensor("c", "F64", {2}).open();
  EXPECT_EQ(lines_of(tree_of(checkpoint, {.sort = SortBy::bytes})), (Lines{"a 1 16", "c 1 16", "b 1 8"}));
  EXPECT_EQ(lines_of(tree_of(checkpoint, {.sort = SortBy::numel})), (Lines{"b 1 8", "a 1 16", "c 1 16"}));
  EXPECT_EQ(lines_of(tree_of(checkpoint, {.sort = SortBy::bytes, .reverse = true})),
            (Lines{"b 1 8", "a 1 16", "c 1 16"}));
  EXPECT_EQ(lines_of(tree_of(checkpoint, {.reverse = true})), (Lines{"c 1 16", "b 1 8", "a 1 16"}));
  EXPECT_ERROR(tree_of(checkpoint, {.sort = SortBy::dtype}), Errc::invalid_argument, "no dtype to sort by");
}

TEST(Tree, TakesNamesOfAnyDepthAndNumber) {
  const auto start = std::chrono::steady_clock::now();
  std::string dots(10'000, '.');
  std::string deep = "d";
  std::vector<std::string> names = {dots, dots + "a", dots + "b"};
  for (int i = 0; i < 300; ++i) names.push_back(deep += ".d");
  SafetensorsFile file;
  for (const std::string& name : names) file.tensor(name, "U8", {1});
  const Tree tree = tree_of(file.open());
  EXPECT_EQ(tree.totals.tensors, names.size());
  EXPECT_EQ(tree.nodes.back().depth, 299u);
  EXPECT_EQ(tree.nodes.back().path, deep);

  StateDict many;
  for (int i = 0; i < 100'000; ++i) many.insert("l." + std::to_string(2 * i) + ".w", Tensor());
  const Tree wide = tree_of(many);
  ASSERT_EQ(wide.nodes.size(), 1u);
  EXPECT_EQ(wide.nodes[0].folded, 100'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace ballast
