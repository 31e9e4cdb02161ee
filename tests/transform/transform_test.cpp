// Checkpoints made from checkpoints: chosen, renamed, cast.
#include <gtest/gtest.h>

#include <ballast/open.hpp>
#include <ballast/save.hpp>
#include <ballast/transform.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::names_of;
using test::SafetensorsFile;
using Names = std::vector<std::string>;

Checkpoint small_model() {
  return SafetensorsFile()
      .tensor("model.layers.0.w", "F32", {2})
      .tensor("model.layers.1.w", "F32", {2})
      .tensor("model.layers.1.b", "I64", {2})
      .tensor("head", "F16", {4})
      .open();
}

TEST(Select, KeepsTheOrderAndTheMetadata) {
  Checkpoint checkpoint = small_model();
  checkpoint.metadata["format"] = "pt";
  const Checkpoint chosen = select(checkpoint, {.include = {"*.w", "head"}, .exclude = {}});
  EXPECT_EQ(names_of(chosen), (Names{"model.layers.0.w", "model.layers.1.w", "head"}));
  EXPECT_EQ(chosen.metadata, checkpoint.metadata);
}

TEST(Select, LetsExcludeWin) {
  EXPECT_EQ(names_of(select(small_model(), {.include = {"model.*"}, .exclude = {"*.w"}})), Names{"model.layers.1.b"});
  EXPECT_EQ(names_of(select(small_model(), {.include = {}, .exclude = {"*"}})), Names{});
  EXPECT_EQ(select(small_model(), {}).size(), 4u);
}

TEST(Select, MatchesWholeNames) {
  EXPECT_EQ(names_of(select(small_model(), {.include = {"layers"}, .exclude = {}})), Names{});
  EXPECT_EQ(names_of(select(small_model(), {.include = {"model.layers.[0-9].?"}, .exclude = {}})).size(), 3u);
  EXPECT_EQ(names_of(select(small_model(), {.include = {"HEAD"}, .exclude = {}})), Names{});
}

// A tensor that is left out takes its metadata with it, so that nothing names a tensor that is not there.
TEST(Select, LeavesOutTheMetadataOfTensorsThatAreGone) {
  Checkpoint checkpoint = small_model();
  Composite& composite = checkpoint.composites.emplace_back();
  composite.name = "s";
  composite.parts = {"head", "model.layers.0.w"};
  checkpoint.unknown_ggml["head"] = {200, {4}};
  checkpoint.unknown_ggml["model.layers.1.b"] = {201, {2}};

  const Checkpoint whole = select(checkpoint, {.include = {"head", "*.w"}, .exclude = {}});
  EXPECT_EQ(whole.composites.size(), 1u);
  EXPECT_EQ(whole.unknown_ggml.size(), 1u);

  const Checkpoint less = select(checkpoint, {.include = {}, .exclude = {"*0.w"}});
  EXPECT_TRUE(less.composites.empty());
  EXPECT_EQ(less.unknown_ggml.size(), 2u);
}

TEST(Rename, ReplacesEveryMatchOfEveryRuleInOrder) {
  EXPECT_EQ(names_of(rename(small_model(), {{"^model\\.", ""}, {"layers\\.(\\d)", "h.\\1"}}))[2], "h.1.b");
  EXPECT_EQ(names_of(rename(SafetensorsFile().tensor("aXbXc", "U8", {1}).open(), {{"X", "."}})), Names{"a.b.c"});
  EXPECT_EQ(names_of(rename(small_model(), {})), names_of(small_model()));
}

TEST(Rename, RefusesTwoTensorsOfOneName) {
  EXPECT_ERROR(rename(small_model(), {{"layers\\.\\d", "layer"}}), Errc::invalid_argument,
               "tensors \"model.layers.0.w\" and \"model.layers.1.w\" would both be called \"model.layer.w\"");
}

TEST(Rename, RefusesRulesThatAreWrong) {
  EXPECT_ERROR(rename(small_model(), {{"(", ""}}), Errc::invalid_argument, "the expression \"(\" is wrong");
  EXPECT_ERROR(rename(small_model(), {{"a", "\\1"}}), Errc::invalid_argument, "the replacement");
  EXPECT_ERROR(parse_rename("no equals sign"), Errc::invalid_argument, "has no '='");
  EXPECT_HINT(parse_rename("no equals sign"), "write REGEX=TEMPLATE");
}

TEST(Rename, IsWrittenAsExpressionAndTemplate) {
  const auto rule = [](const char* text) {
    const RenameRule parsed = parse_rename(text);
    return parsed.pattern + " -> " + parsed.replacement;
  };
  EXPECT_EQ(rule("a=b"), "a -> b");
  EXPECT_EQ(rule("^module\\.="), "^module\\. -> ");
  EXPECT_EQ(rule("a=b=c"), "a -> b=c");
  EXPECT_EQ(rule("a\\=b=c"), "a=b -> c");
  EXPECT_EQ(rule("a\\\\=b"), "a\\\\ -> b");
  EXPECT_EQ(rule("="), " -> ");
}

// A backtracking engine would never finish with this expression.
TEST(Rename, TakesNoExponentialTime) {
  const Checkpoint checkpoint = SafetensorsFile().tensor(std::string(5000, 'a'), "U8", {1}).open();
  EXPECT_EQ(rename(checkpoint, {{"(a*)*b", "x"}}).size(), 1u);
}

TEST(Cast, TouchesFloatingTensorsOnlyAndReadsNothingYet) {
  const Checkpoint cast_model = cast(small_model(), DType::bf16);
  EXPECT_EQ(cast_model.at("model.layers.0.w").dtype(), DType::bf16);
  EXPECT_EQ(cast_model.at("head").dtype(), DType::bf16);
  EXPECT_EQ(cast_model.at("model.layers.1.b").dtype(), DType::i64);
  EXPECT_FALSE(cast_model.at("head").is_mapped());
  EXPECT_EQ(names_of(cast_model), names_of(small_model()));
}

TEST(Cast, RoundsToNearestEvenAndKeepsNaN) {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const std::vector<std::uint32_t> values = {bits(1.0f), 0x3F808000, 0x3F818000, 0x7FC00000, 0xFF800000, bits(-0.0f)};
  const Checkpoint checkpoint =
      cast(SafetensorsFile().values<std::uint32_t>("w", "F32", {6}, values).open(), DType::bf16);
  EXPECT_EQ(test::values_of<std::uint16_t>(checkpoint.at("w")),
            (std::vector<std::uint16_t>{0x3F80, 0x3F80, 0x3F82, 0x7FC0, 0xFF80, 0x8000}));
}

TEST(Cast, SavesAsItReads) {
  const test::TempDir folder;
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 7;
  const Checkpoint checkpoint =
      cast(SafetensorsFile().values<float>("w", "F32", {100, 1000}, values).open(), DType::f16);
  save(checkpoint, folder / "x.safetensors", {.durable = false, .threads = 2, .memory_bytes = 1 << 16});
  EXPECT_EQ(test::text_of(open(folder / "x.safetensors").at("w")), test::text_of(checkpoint.at("w")));
}

TEST(Cast, RefusesDtypesThatAreNotFloating) {
  EXPECT_ERROR(cast(small_model(), DType::i32), Errc::invalid_argument, "I32 is no floating dtype");
  EXPECT_ERROR(cast(SafetensorsFile().tensor("w", "F32", {4}).open(), DType::f6_e2m3), Errc::unsupported,
               "tensor \"w\": cannot cast");
}

TEST(Quantize, TakesIq4IfRowsAreNoWholeBlocksOfASmallerIqType) {
  for (const auto& [type, file_type] :
       {std::pair{DType::iq3_s, 26U}, {DType::iq3_xxs, 23U}, {DType::iq2_s, 29U}, {DType::iq1_m, 31U}}) {
    const Checkpoint model =
        cast(SafetensorsFile().tensor("a", "F32", {2, 256}).tensor("b", "F32", {2, 96}).open(), type);
    EXPECT_EQ(model.at("a").dtype(), type);
    EXPECT_EQ(model.at("b").dtype(), DType::iq4_nl);
    EXPECT_EQ(model.typed_metadata.find("general.file_type")->as_uint(), file_type) << name(type);
  }
}

TEST(Quantize, RefusesTypesThatNeedImportance) {
  for (const DType type : {DType::iq1_s, DType::iq2_xxs, DType::iq2_xs}) {
    EXPECT_ERROR(cast(small_model(), type), Errc::unsupported, "with an importance matrix only");
    EXPECT_EQ(std::ranges::count(encodable_types(), type), 0);
  }
}

TEST(Transforms, TogetherEndInAFile) {
  const test::TempDir folder;
  const Checkpoint result =
      cast(rename(select(small_model(), {.include = {}, .exclude = {"head"}}), {{"^model\\.", ""}}), DType::f16);
  save(result, folder / "x.safetensors", {.durable = false});
  const Checkpoint again = open(folder / "x.safetensors");
  EXPECT_EQ(names_of(again), (Names{"layers.1.b", "layers.0.w", "layers.1.w"}));
  EXPECT_EQ(again.at("layers.0.w").dtype(), DType::f16);
}

}  // namespace
}  // namespace ballast
