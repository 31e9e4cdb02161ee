// Layouts of weights, converted both ways.
#include <ballast/weight_map.hpp>

#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
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

// Expects the same names, shapes and values after a map and its reverse.
void expect_reversible(const Checkpoint& before, const std::string& json) {
  const WeightMap map = WeightMap::parse(json);
  const Checkpoint after = apply(apply(before, map), map.reversed());
  const DiffReport report = diff(before, after);
  EXPECT_TRUE(report.equal()) << json;
  EXPECT_EQ(names_of(before).size(), names_of(after).size());
}

TEST(WeightMap, FusesAndSplits) {
  const Checkpoint before = checkpoint_with({{"a.q.weight", numbers({4, 2}, 0)},
                                             {"a.norm", numbers({3}, 50)},
                                             {"a.k.weight", numbers({2, 2}, 10)},
                                             {"a.v.weight", numbers({2, 2}, 20)},
                                             {"b.q.weight", numbers({4, 2}, 100)},
                                             {"b.k.weight", numbers({2, 2}, 110)},
                                             {"b.v.weight", numbers({2, 2}, 120)}});
  const std::string json = R"({"rules": [{"from": ["{x}.q.weight", "{x}.k.weight", "{x}.v.weight"],
                                          "to": "{x}.qkv.weight", "concat": 0, "sizes": [2, 1, 1]}]})";
  const Checkpoint fused = apply(before, WeightMap::parse(json));
  EXPECT_EQ(names_of(fused), (Names{"a.qkv.weight", "a.norm", "b.qkv.weight"}));
  EXPECT_EQ(fused.at("a.qkv.weight").shape(), Shape({8, 2}));
  EXPECT_EQ(values_of(fused.at("a.qkv.weight")),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 20, 21, 22, 23}));
  expect_reversible(before, json);
}

TEST(WeightMap, FusesAlongTheLastDimensionAndReadsAnyRange) {
  const Checkpoint before = checkpoint_with({{"a", numbers({2, 1, 3}, 0)}, {"b", numbers({2, 1, 2}, 10)}});
  const std::string json = R"({"rules": [{"from": ["a", "b"], "to": "ab", "concat": 2, "sizes": [3, 2]}]})";
  const Tensor fused = apply(before, WeightMap::parse(json)).at("ab");
  const std::vector<float> all{0, 1, 2, 10, 11, 3, 4, 5, 12, 13};
  EXPECT_EQ(values_of(fused), all);
  const auto bytes = std::as_bytes(std::span(all));
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t size = 0; first + size <= bytes.size(); ++size) {
      std::vector<std::byte> part(size);
      fused.read(first, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }
  expect_reversible(before, json);
}

TEST(WeightMap, StacksExpertsByTheirNumbers) {
  Checkpoint before;
  for (int i : {10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9})  // in any order
    before.tensors.insert("l.experts." + std::to_string(i) + ".w", numbers({2, 3}, static_cast<float>(10 * i)));
  const std::string json = R"({"rules": [{"from": "{x}.experts.{n}.w", "to": "{x}.experts.w", "stack": 0}]})";
  const Checkpoint stacked = apply(before, WeightMap::parse(json));
  EXPECT_EQ(names_of(stacked), Names{"l.experts.w"});
  EXPECT_EQ(stacked.at("l.experts.w").shape(), Shape({11, 2, 3}));
  EXPECT_EQ(values_of(stacked.at("l.experts.w").slice(parse_slice("10"))),
            (std::vector<float>{100, 101, 102, 103, 104, 105}));
  expect_reversible(before, json);
  expect_reversible(before, R"({"rules": [{"from": "{x}.experts.{n}.w", "to": "{x}.experts.w", "stack": 2}]})");
}

TEST(WeightMap, TransposesReordersAndAdds) {
  const Checkpoint before =
      checkpoint_with({{"h.0.c_attn.weight", numbers({2, 6})}, {"q", numbers({8, 3})}, {"n", numbers({4})}});
  const std::string json = R"({"rules": [
    {"from": "h.{n}.c_attn.weight", "to": "layers.{n}.qkv", "permute": [1, 0]},
    {"from": "layers.{n}.qkv", "to": ["layers.{n}.q", "layers.{n}.k", "layers.{n}.v"], "split": 0},
    {"from": "q", "interleave": 2},
    {"from": "n", "to": "norm", "add": 1}]})";
  const Checkpoint after = apply(before, WeightMap::parse(json));
  EXPECT_EQ(names_of(after), (Names{"layers.0.q", "layers.0.k", "layers.0.v", "q", "norm"}));
  EXPECT_EQ(values_of(after.at("layers.0.k")), (std::vector<float>{2, 8, 3, 9}));
  EXPECT_EQ(values_of(after.at("q").slice(parse_slice(":, 0"))), (std::vector<float>{0, 6, 3, 9, 12, 18, 15, 21}));
  EXPECT_EQ(values_of(after.at("norm")), (std::vector<float>{1, 2, 3, 4}));
  expect_reversible(before, json);
}

TEST(WeightMap, AddsInTheTensorsOwnDtype) {
  const Checkpoint before = checkpoint_with({{"a", numbers({2}, 256, DType::bf16)}});
  const Checkpoint after = apply(before, WeightMap::parse(R"({"rules":[{"from":"a","add":1}]})"));
  EXPECT_EQ(after.at("a").dtype(), DType::bf16);
  EXPECT_EQ(values_of(after.at("a")), (std::vector<float>{256, 256}));  // BF16 has no 257, which goes to even
}

TEST(WeightMap, RenamesByExpressionsAndBack) {
  const Checkpoint before =
      checkpoint_with({{"model.h.0.w", numbers({1})}, {"model.h.10.w", numbers({1}, 1)}, {"x", numbers({1}, 2)}});
  const std::string json = R"({"rules": [{"rename": "^model\\.h\\.(\\d+)\\.", "to": "layers.\\1."}]})";
  EXPECT_EQ(names_of(apply(before, WeightMap::parse(json))), (Names{"layers.0.w", "layers.10.w", "x"}));
  expect_reversible(before, json);
  const Checkpoint odd = checkpoint_with({{"model.a", numbers({1})}, {"b", numbers({1})}});
  const WeightMap strip = WeightMap::parse(R"({"rules": [{"rename": "^model\\.", "to": ""}]})");
  EXPECT_ERROR(apply(apply(odd, strip), WeightMap::parse(R"({"rules": [{"rename": "^model.", "to": ""}]})").reversed()),
               Errc::unsupported, "rule 1: the expression \"^model.\" cannot be turned round");
  // "b" gets the prefix as well on the way back, since nobody can know that it had none: the rule allows that.
  EXPECT_EQ(names_of(apply(apply(odd, strip), strip.reversed())), (Names{"model.a", "model.b"}));
}

TEST(WeightMap, DoesNotReverseANameThatItDidNotMake) {
  const WeightMap map = WeightMap::parse(R"({"rules": [{"rename": "layer", "to": "layers"}]})");
  // The map itself would have made "layerss" from "layers".
  EXPECT_EQ(names_of(apply(checkpoint_with({{"layers.1", numbers({1})}}), map.reversed())), Names{"layer.1"});
  const WeightMap dots = WeightMap::parse(R"({"rules": [{"rename": "_", "to": "."}]})");
  EXPECT_EQ(names_of(apply(checkpoint_with({{"a.b", numbers({1})}}), dots.reversed())), Names{"a_b"});
  EXPECT_ERROR(apply(checkpoint_with({{"a_b.c", numbers({1})}}), dots.reversed()), Errc::mismatch,
               "rule 1: the name \"a_b.c\" did not come from \"a_b_c\" by the expression \"_\"");
}

TEST(Reversed, IsARuleOnlyIfNothingIsForgotten) {
  const auto back = [](const char* pattern, const char* replacement) -> std::string {
    const auto rule = reversed(RenameRule{pattern, replacement});
    return rule ? rule->pattern + " = " + rule->replacement : "none";
  };
  EXPECT_EQ(back("^module\\.", ""), "^ = module.");
  EXPECT_EQ(back("\\.gamma$", ".weight"), "\\.weight$ = .gamma");
  EXPECT_EQ(back("h\\.(\\d+)\\.(w|b)", "\\2-\\1"), "(w|b)\\-(\\d+) = h.\\2.\\1");
  EXPECT_EQ(back("a\\$", "b"), "b = a$");
  EXPECT_EQ(back("a", ""), "none");
  EXPECT_EQ(back("a.c", "b"), "none");
  EXPECT_EQ(back("(a)(b)", "\\1"), "none");
  EXPECT_EQ(back("(a)", "\\1\\1"), "none");
  EXPECT_EQ(back("(a)", "\\0"), "none");
  EXPECT_EQ(back("((a))", "\\1\\2"), "none");
  EXPECT_EQ(back("(?:a)", "b"), "none");
  EXPECT_EQ(back("\\d", "b"), "none");
}

// The way back could not know where to cut.
TEST(WeightMap, RefusesPartsThatAreNotEqualUnlessItIsToldTheirSizes) {
  const std::string fuse = R"({"rules": [{"from": ["q", "k"], "to": "qk", "concat": 0}]})";
  const Checkpoint unequal = checkpoint_with({{"q", numbers({4, 2})}, {"k", numbers({2, 2})}});
  EXPECT_ERROR(apply(unequal, WeightMap::parse(fuse)), Errc::mismatch, "part 1 has 4 of 6, which is no equal part");
  EXPECT_HINT(apply(unequal, WeightMap::parse(fuse)), "sizes");
}

TEST(WeightMap, WithAnIncompleteGroupSaysWhatIsMissing) {
  const std::string fuse = R"({"rules": [{"from": ["{x}.q", "{x}.k"], "to": "{x}.qk", "concat": 0}]})";
  EXPECT_ERROR(apply(checkpoint_with({{"a.q", numbers({2})}}), WeightMap::parse(fuse)), Errc::mismatch,
               "rule 1: tensor \"a.q\": belongs with \"a.k\", which is not there");
  const std::string stack = R"({"rules": [{"from": "e.{n}", "to": "e", "stack": 0}]})";
  EXPECT_ERROR(apply(checkpoint_with({{"e.0", numbers({2})}, {"e.2", numbers({2})}}), WeightMap::parse(stack)),
               Errc::mismatch, "belongs with \"e.1\"");
  EXPECT_ERROR(apply(checkpoint_with({{"e.0", numbers({2})}, {"e.00", numbers({2})}}), WeightMap::parse(stack)),
               Errc::mismatch, "\"e.0\" and \"e.00\" are the same part");
  EXPECT_ERROR(apply(checkpoint_with({{"e.0", numbers({2})}, {"e", numbers({2})}}), WeightMap::parse(stack)),
               Errc::invalid_argument, "two tensors would be called \"e\"");
  EXPECT_ERROR(apply(checkpoint_with({{"a.q", numbers({2})}, {"a.k", numbers({2, 1})}}), WeightMap::parse(fuse)),
               Errc::mismatch, "tensor \"a.q\": is F32 [2], which does not go with \"a.k\", which is F32 [2, 1]");
}

TEST(WeightMap, ThatDoesNotFitTheShapesSaysSo) {
  const auto refuses = [](const char* rule, const Shape& shape, Errc code, const char* why) {
    const WeightMap map = WeightMap::parse(std::string(R"({"rules": [)") + rule + "]}");
    EXPECT_ERROR(apply(checkpoint_with({{"a", numbers(shape)}}), map), code, why);
  };
  refuses(R"({"from": "a", "to": ["b", "c"], "split": 0})", {3}, Errc::mismatch, "3 cannot be cut into 2 equal parts");
  refuses(R"({"from": "a", "to": ["b", "c"], "split": 0, "sizes": [1, 18446744073709551615]})", {4}, Errc::mismatch,
          "cannot be cut into parts of these sizes");
  refuses(R"({"from": "a", "to": ["b", "c"], "split": 1})", {4}, Errc::mismatch, "no dimension 1 in [4]");
  refuses(R"({"from": "a", "permute": [0, 0]})", {2, 2}, Errc::invalid_argument, "not a permutation");
  refuses(R"({"from": "a", "permute": [0, 18446744073709551615]})", {2, 2}, Errc::invalid_argument,
          "not a permutation");
  refuses(R"({"from": "a", "interleave": 3})", {4, 2}, Errc::mismatch, "4 rows are not 3 heads of pairs");
  refuses(R"({"from": "a", "to": "{n}", "unstack": 4})", {4, 2}, Errc::mismatch, "no dimension 4");
}

TEST(WeightMap, IsRefusedWithItsRuleIfItIsWrong) {
  const auto refuses = [](const char* json, const char* why) {
    const auto error = test::error_of([&] { WeightMap::parse(json); });
    ASSERT_TRUE(error) << json;
    EXPECT_NE(std::string(error->what()).find(why), std::string::npos) << error->what();
  };
  refuses("[]", "[] is no object");
  refuses("{}", "there is no \"rules\"");
  refuses(R"({"rules": {}})", "{} is no list");
  refuses(R"({"rule": []})", "\"rule\" is no member of such a file");
  refuses(R"({"rules": [{"from": "a"}, {"from": "a", "concatenate": 0}]})", "rule 2: \"concatenate\" is no member");
  refuses(R"({"rules": [{"to": "a"}]})", "there is no \"from\"");
  refuses(R"({"rules": [{"from": ["a", "b"], "to": "c"}]})", "only \"concat\" makes one tensor of several");
  refuses(R"({"rules": [{"from": "a", "to": "b", "concat": 0}]})", "at least two names");
  refuses(R"({"rules": [{"from": ["a", "b"], "to": "c", "concat": 0, "sizes": [1]}]})", "one number of at least 1");
  refuses(R"({"rules": [{"from": ["a", "b"], "to": "c", "concat": 0, "sizes": [1, 0]}]})", "one number of at least 1");
  refuses(R"({"rules": [{"from": "{x}", "to": "{y}"}]})", "other places in braces");
  refuses(R"({"rules": [{"from": "{x}", "to": "a"}]})", "other places in braces");
  refuses(R"({"rules": [{"from": "{x", "to": "a"}]})", "a brace that is no place");
  refuses(R"({"rules": [{"from": "{}", "to": "a"}]})", "a brace that is no place");
  refuses(R"({"rules": [{"from": "a", "to": "b", "stack": 0}]})", "one more place in braces");
  refuses(R"({"rules": [{"from": "a", "stack": 0, "add": 1}]})", "does two things");
  refuses(R"({"rules": [{"from": "a", "permute": 1}]})", "1 is no list");
  refuses(R"({"rules": [{"from": [], "to": "b"}]})", "a list of names is empty");
  refuses(R"({"rules": [{"rename": "a", "from": "b", "to": "c"}]})", "both \"rename\" and \"from\"");
}

TEST(WeightMap, NotesARuleThatMatchesNothing) {
  const Checkpoint after =
      apply(checkpoint_with({{"a", numbers({2})}}), WeightMap::parse(R"({"rules": [{"from": "b", "to": "c"}]})"));
  ASSERT_EQ(after.notes.size(), 1u);
  EXPECT_EQ(after.notes[0].text, "rule 1 of the map matches no tensor");
}

TEST(WeightMap, ReadsNothingBeforeTheResultIsRead) {
  test::TempDir folder;
  save(checkpoint_with({{"a", numbers({1024, 64})}, {"b", numbers({1024, 64}, 5)}}), folder / "ab.safetensors");
  const WeightMap map = WeightMap::parse(R"({"rules": [{"from": ["a", "b"], "to": "c", "concat": 1},
      {"from": "c", "permute": [1, 0]}]})");
  const Checkpoint mapped = apply(open(folder / "ab.safetensors"), map);
  save(mapped, folder / "c.safetensors");
  const Checkpoint back = apply(open(folder / "c.safetensors"), map.reversed());
  EXPECT_TRUE(diff(open(folder / "ab.safetensors"), back).equal());
}

TEST(WeightMap, SplitsFusedWeightsForAModel) {
  struct Model {
    Tensor query, key;
    auto fields() { return ballast::fields(field("q", query), field("k", key)); }
  } model;
  LoadStateDictOptions options;
  options.map = WeightMap::parse(R"({"rules": [{"from": "qk", "to": ["q", "k"], "split": 0}]})");
  load_state_dict(model, checkpoint_with({{"qk", numbers({4, 2})}}), options);
  EXPECT_EQ(values_of(model.key), (std::vector<float>{4, 5, 6, 7}));
}

}  // namespace
}  // namespace ballast
