// The rules of maps that look at more than one name: shapes, other tensors, conditions, groups of names.
#include <ballast/weight_map.hpp>

#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;
using test::numbers;
using test::values_of;
using Names = std::vector<std::string>;

Checkpoint checkpoint_with(std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  Checkpoint checkpoint;
  for (const auto& [name, tensor] : tensors) checkpoint.tensors.insert(name, tensor);
  return checkpoint;
}

Checkpoint named(const Names& names) {
  Checkpoint checkpoint;
  for (const std::string& name : names) checkpoint.tensors.insert(name, numbers({1}));
  return checkpoint;
}

WeightMap rule(const std::string& json) { return WeightMap::parse(R"({"rules": [)" + json + "]}"); }

// What a rule makes of names; and the way back gives the names that were there.
Names there_and_back(const std::string& json, const Names& names) {
  const Checkpoint there = apply(named(names), rule(json));
  EXPECT_EQ(names_of(apply(there, rule(json).reversed())), names) << json;
  return names_of(there);
}

TEST(Reshape, FoldsAndUnfoldsDimensions) {
  const Checkpoint before = checkpoint_with({{"patch", numbers({3, 2, 2, 5, 5})}});
  const WeightMap fold = rule(R"J({"from": "patch", "reshape": ["out in 2 5 5", "out (in 2 5 5)"]})J");
  const Checkpoint after = apply(before, fold);
  EXPECT_EQ(after.at("patch").shape(), Shape({3, 100}));
  EXPECT_EQ(values_of(after.at("patch")), values_of(before.at("patch")));
  EXPECT_TRUE(diff(before, apply(after, fold.reversed())).equal());
}

TEST(Reshape, WithAPermutationTakesInterleavedRowsApart) {
  const Checkpoint before = checkpoint_with({{"w", numbers({6, 1})}});
  const WeightMap map = WeightMap::parse(R"J({"rules": [
    {"from": "w", "reshape": ["(half 2) c", "half 2 c"]},
    {"from": "w", "permute": [1, 0, 2]},
    {"from": "w", "reshape": ["2 half c", "(2 half) c"]}]})J");
  const Checkpoint after = apply(before, map);
  EXPECT_EQ(values_of(after.at("w")), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_TRUE(diff(before, apply(after, map.reversed())).equal());
}

TEST(Reshape, RefusesShapesAndFormsThatDoNotFit) {
  const auto refuses = [](const char* forms, const Shape& shape, const char* why) {
    const auto map = rule(std::string(R"({"from": "a", "reshape": )") + forms + "}");
    EXPECT_ERROR(apply(checkpoint_with({{"a", numbers(shape)}}), map), Errc::mismatch, why);
  };
  refuses(R"J(["a 2", "(a 2)"])J", {4}, "tensor \"a\": [4] is not of the form \"a 2\"");
  refuses(R"J(["(a 3)", "a 3"])J", {4}, "[4] is not of the form \"(a 3)\"");
  refuses(R"J(["a 3", "(a 3)"])J", {4, 2}, "[4, 2] is not of the form");
  refuses(R"J(["(a 4294967296 4294967296 2)", "a (4294967296 4294967296 2)"])J", {4}, "[4] is not of the form");
  const auto is_wrong = [](const char* forms, const char* why) {
    EXPECT_ERROR(rule(std::string(R"({"from": "a", "reshape": )") + forms + "}"), Errc::invalid_argument, why);
  };
  is_wrong(R"J(["a b", "b a"])J", "the same words and numbers in the same order");
  is_wrong(R"J(["a 2", "(a 2"])J", "a parenthesis too few");
  is_wrong(R"J(["a b)", "a b"])J", "a parenthesis too many");
  is_wrong(R"J(["((a) b)", "a b"])J", "a parenthesis too many");
  is_wrong(R"J(["a ()", "a"])J", "nothing between two parentheses");
  is_wrong(R"J(["(a b)", "a b"])J", "two words in one pair of parentheses");
  is_wrong(R"J(["a a", "a a"])J", "has \"a\" twice");
  is_wrong(R"J(["a 0", "a 0"])J", "\"0\", which is no word");
  is_wrong(R"J(["a -1", "a -1"])J", "\"-1\", which is no word");
  is_wrong(R"J(["a 99999999999999999999", "a 99999999999999999999"])J", "which is no word");
  is_wrong(R"J(["", ""])J", "is empty");
  EXPECT_ERROR(rule(R"({"from": "a", "reshape": ["a"]})"), Errc::malformed, "two forms");
}

const char* const kFit = R"({"from": "{x}.w", "permute": [0, 2, 1], "fit": [2, "{x}.norm"]})";

TEST(PermuteToFit, TurnsWhatDoesNotFitAndLeavesWhatDoes) {
  const Checkpoint before = checkpoint_with({{"old.norm", numbers({3})},
                                             {"old.w", numbers({2, 3, 4})},
                                             {"new.norm", numbers({3})},
                                             {"new.w", numbers({2, 4, 3})},
                                             {"square.norm", numbers({3})},
                                             {"square.w", numbers({2, 3, 3})}});
  const Checkpoint after = apply(before, rule(kFit));
  EXPECT_EQ(after.at("old.w").shape(), Shape({2, 4, 3}));
  EXPECT_EQ(values_of(after.at("old.w").slice(parse_slice("0, 0"))), (std::vector<float>{0, 4, 8}));
  EXPECT_EQ(after.at("new.w").storage(), before.at("new.w").storage());
  EXPECT_EQ(values_of(after.at("square.w")), values_of(before.at("square.w"))) << "nothing says that it is turned";

  const Checkpoint back = apply(after, rule(kFit).reversed());
  EXPECT_EQ(values_of(back.at("old.w")), values_of(before.at("old.w")));
  EXPECT_EQ(back.at("old.w").shape(), Shape({2, 3, 4}));
  EXPECT_EQ(back.at("new.w").shape(), Shape({2, 3, 4})) << "the way back leads to the older layout";
}

TEST(PermuteToFit, RefusesWhatFitsNeitherWay) {
  EXPECT_ERROR(apply(checkpoint_with({{"a.w", numbers({2, 3, 4})}}), rule(kFit)), Errc::mismatch,
               "tensor \"a.w\": belongs with \"a.norm\", which is not there");
  EXPECT_ERROR(apply(checkpoint_with({{"a.w", numbers({2, 3, 4})}, {"a.norm", numbers({5})}}), rule(kFit)),
               Errc::mismatch,
               "[2, 3, 4] does not fit \"a.norm\", which is [5], and would not fit if it were permuted");
  EXPECT_ERROR(apply(checkpoint_with({{"a.w", numbers({2})}, {"a.norm", numbers({5})}}), rule(kFit)), Errc::mismatch,
               "no dimension 2 in [2]");
  EXPECT_ERROR(rule(R"({"from": "a", "fit": [0, "b"]})"), Errc::invalid_argument, "goes with \"permute\"");
  EXPECT_ERROR(rule(R"({"from": "a", "permute": [1, 0], "fit": [2, "b"]})"), Errc::invalid_argument, "a dimension");
  EXPECT_ERROR(rule(R"({"from": "a", "permute": [1, 0], "fit": [0, "{x}"]})"), Errc::invalid_argument, "a place");
  EXPECT_ERROR(rule(R"({"from": "a", "permute": [1, 0], "fit": [0]})"), Errc::malformed, "a dimension and a name");
}

TEST(RenameGroup, ChangesNamesAtOnceSoThatTheyMayChangePlaces) {
  const char* const swap = R"({"from": ["{x}.a", "{x}.b"], "to": ["{x}.b", "{x}.a"]})";
  EXPECT_EQ(there_and_back(swap, {"1.a", "1.b", "2.a", "c"}), (Names{"1.b", "1.a", "2.b", "c"}));
  EXPECT_ERROR(rule(R"({"from": ["a", "b"], "to": ["c"]})"), Errc::invalid_argument, "as many new names as old ones");
  EXPECT_ERROR(apply(named({"a", "b"}), rule(R"({"from": ["a", "b"], "to": ["c", "c"]})")), Errc::invalid_argument,
               "\"a\" and \"b\" would both be called \"c\"");
}

// What is called norm1 in a new file is called norm0 in an old one, which has a norm1, too.
TEST(RenameGroup, IsGuardedByANameThatOnlyOldFilesHave) {
  const char* const guarded =
      R"({"from": ["{x}.norm0.{p}", "{x}.norm1.{p}"], "to": ["{x}.norm1.{p}", "{x}.norm2.{p}"], "if": "{x}.norm0.{p}"})";
  const Names old{"l.0.norm0.w", "l.0.norm1.w"}, now{"l.0.norm1.w", "l.0.norm2.w"};
  EXPECT_EQ(there_and_back(guarded, old), now);
  EXPECT_EQ(names_of(apply(named(now), rule(guarded))), now) << "a new file stays";
  EXPECT_EQ(names_of(apply(named(old), rule(guarded).reversed())), old) << "an old file stays on the way back";
  // The layers are asked one by one.
  EXPECT_EQ(names_of(apply(named({"0.norm0.w", "0.norm1.w", "1.norm1.w"}), rule(guarded))),
            (Names{"0.norm1.w", "0.norm2.w", "1.norm1.w"}));
}

TEST(Conditions, AskForOtherTensors) {
  EXPECT_EQ(there_and_back(R"({"from": "{x}.w", "to": "{x}.v", "if": "{x}.scale"})", {"a.w", "a.scale", "b.w"}),
            (Names{"a.v", "a.scale", "b.w"}));
  EXPECT_EQ(there_and_back(R"({"from": "{x}.w", "to": "{x}.v", "unless": "{x}.scale"})", {"a.w", "a.scale", "b.w"}),
            (Names{"a.w", "a.scale", "b.v"}));
  EXPECT_EQ(there_and_back(R"({"from": "{x}.w", "to": "{x}.v", "if": ["{y}.scale", "head"]})", {"a.w", "b.scale"}),
            (Names{"a.w", "b.scale"}));
  EXPECT_EQ(
      there_and_back(R"({"from": "{x}.w", "to": "{x}.v", "if": ["{y}.scale", "head"]})", {"a.w", "b.scale", "head"}),
      (Names{"a.v", "b.scale", "head"}));
  const Checkpoint some = checkpoint_with({{"a.w", numbers({2, 1})}, {"b.w", numbers({2, 1})}, {"b.t", numbers({1})}});
  const Checkpoint turned = apply(some, rule(R"({"from": "{x}.w", "permute": [1, 0], "if": "{x}.t"})"));
  EXPECT_EQ(turned.at("a.w").shape(), Shape({2, 1}));
  EXPECT_EQ(turned.at("b.w").shape(), Shape({1, 2}));
}

// What a look-behind says in other programs.
TEST(Conditions, ExceptNames) {
  const char* const except =
      R"({"from": "{x}.layer.{y}", "to": "{x}.model.layer.{y}", "except": ["{z}.model.layer.{y}", "model.layer.{y}"]})";
  EXPECT_EQ(there_and_back(except, {"a.layer.0"}), Names{"a.model.layer.0"});
  EXPECT_EQ(names_of(apply(named({"a.model.layer.0", "model.layer.0"}), rule(except))),
            (Names{"a.model.layer.0", "model.layer.0"}));
  // A name that the rule left alone is not taken for one that it made.
  const char* const some = R"({"from": "{x}.w", "to": "{x}.v", "except": "head.w"})";
  EXPECT_EQ(there_and_back(some, {"a.w", "head.w", "head.v"}), (Names{"a.v", "head.w", "head.v"}));
}

TEST(Conditions, GoWithRulesThatMakeOneTensorOfOne) {
  const char* const why = "only rules have that make one tensor of one";
  EXPECT_ERROR(rule(R"({"from": "{x}.{n}", "to": "{x}", "stack": 0, "if": "a"})"), Errc::invalid_argument, why);
  EXPECT_ERROR(rule(R"({"from": "a", "to": ["b", "c"], "split": 0, "except": "a"})"), Errc::invalid_argument, why);
  EXPECT_ERROR(rule(R"({"rename": "a", "to": "b", "unless": "c"})"), Errc::malformed, "goes with \"from\"");
  EXPECT_ERROR(rule(R"({"from": "a", "to": "b", "if": []})"), Errc::malformed, "a list of names is empty");
  EXPECT_ERROR(apply(named({"a"}), rule(R"({"from": "a", "to": "b", "if": "{"})")), Errc::invalid_argument, "a brace");
}

TEST(Count, RefusesAStackOfMoreOrFewer) {
  const auto map = rule(R"({"from": "{x}.{n}", "to": "{x}", "stack": 0, "count": 3})");
  EXPECT_EQ(names_of(apply(named({"e.0", "e.1", "e.2"}), map)), Names{"e"});
  EXPECT_ERROR(apply(named({"e.0", "e.1"}), map), Errc::mismatch, "tensor \"e.0\": belongs with \"e.2\"");
  EXPECT_ERROR(apply(named({"e.0", "e.1", "e.2", "e.3"}), map), Errc::mismatch,
               "there are 4 of such tensors and not 3");
  EXPECT_ERROR(apply(checkpoint_with({{"e", numbers({2, 1})}}), map.reversed()), Errc::mismatch, "there are 2 of such");
  EXPECT_ERROR(rule(R"({"from": "a", "to": "b", "count": 1})"), Errc::invalid_argument, "goes with \"stack\"");
}

TEST(Optional, SaysNothingIfNothingMatches) {
  EXPECT_TRUE(apply(named({"a"}), rule(R"({"from": "b", "to": "c", "optional": true})")).notes.empty());
  EXPECT_TRUE(apply(named({"a"}), rule(R"({"rename": "^b", "to": "c", "optional": true})")).notes.empty());
}

TEST(Stack, NamesTheTensorThatDoesNotGoWithTheOthers) {
  const auto map = rule(R"({"from": "e.{n}", "to": "e", "stack": 0})");
  EXPECT_ERROR(apply(checkpoint_with({{"e.0", numbers({2})}, {"e.1", numbers({3})}}), map), Errc::mismatch,
               "tensor \"e.0\": is F32 [2], which does not go with \"e.1\", which is F32 [3]");
  EXPECT_ERROR(apply(checkpoint_with({{"e.0", numbers({2})}, {"e.1", numbers({2}, 0, DType::f16)}}), map),
               Errc::mismatch, "which does not go with \"e.1\", which is F16 [2]");
}

}  // namespace
}  // namespace ballast
