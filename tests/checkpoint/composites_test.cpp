// Sparse and quantized tensors kept inside safetensors by agreement, and back.
#include <gtest/gtest.h>

#include <ballast/hash.hpp>
#include <ballast/open.hpp>
#include <ballast/save.hpp>

#include "builders/temp_dir.hpp"
#include "builders/torch_file.hpp"
#include "checkpoint/agreements/composites.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

constexpr const char* kCompositesKey = "ballast.composites";

Tensor integers_of(DType dtype, Shape shape, const std::vector<std::uint8_t>& bytes) {
  return Tensor::from_bytes(dtype, std::move(shape), std::as_bytes(std::span(bytes)));
}

Checkpoint quantized(DType dtype, Shape shape, const std::vector<std::uint8_t>& bytes) {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("q", integers_of(dtype, shape, bytes));
  Composite composite;
  composite.name = "q";
  composite.layout = "quantized";
  composite.shape = shape;
  composite.parts = {"q"};
  composite.scale = 0.1;
  composite.zero_point = -3;
  checkpoint.composites.push_back(composite);
  return checkpoint;
}

Checkpoint sparse() {
  Checkpoint checkpoint;
  const std::int64_t index[] = {1};
  const float value[] = {2};
  checkpoint.tensors.insert("s.indices", Tensor::from_values<std::int64_t>(DType::i64, {1, 1}, index));
  checkpoint.tensors.insert("s.values", Tensor::from_values<float>(DType::f32, {1}, value));
  Composite composite;
  composite.name = "s";
  composite.layout = "sparse_coo";
  composite.shape = Shape{4};
  composite.parts = {"s.indices", "s.values"};
  checkpoint.composites.push_back(composite);
  return checkpoint;
}

void expect_same_composites(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(hash(a).digest, hash(b).digest);
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.composites.size(), b.composites.size());
  for (std::size_t i = 0; i < a.composites.size(); ++i) {
    EXPECT_EQ(a.composites[i].name, b.composites[i].name);
    EXPECT_EQ(a.composites[i].layout, b.composites[i].layout);
    EXPECT_EQ(a.composites[i].shape, b.composites[i].shape);
    EXPECT_EQ(a.composites[i].parts, b.composites[i].parts);
    EXPECT_EQ(a.composites[i].scale, b.composites[i].scale);
    EXPECT_EQ(a.composites[i].zero_point, b.composites[i].zero_point);
    EXPECT_EQ(a.composites[i].axis, b.composites[i].axis);
  }
}

TEST(Composites, ComeBackAsTheyWere) {
  Checkpoint channels = quantized(DType::qi8, {2, 2}, {1, 2, 3, 4});
  channels.composites[0].axis = 1;
  channels.composites[0].scale = 1;
  channels.composites[0].zero_point = 0;
  const double scales[] = {0.5, 0.25};
  const std::int64_t zeros[] = {1, 2};
  channels.tensors.insert("q.scales", Tensor::from_values<double>(DType::f64, {2}, scales));
  channels.tensors.insert("q.zero_points", Tensor::from_values<std::int64_t>(DType::i64, {2}, zeros));
  channels.composites[0].parts = {"q", "q.scales", "q.zero_points"};
  for (const Checkpoint& checkpoint :
       {sparse(), channels, quantized(DType::qu8, {4}, {1, 2, 3, 4}), quantized(DType::qi32, {1}, {1, 2, 3, 4}),
        quantized(DType::qu4x2, {2, 4}, {1, 2, 3, 4}), quantized(DType::qu2x4, {4, 4}, {1, 2, 3, 4})}) {
    expect_same_composites(unfold_composites(fold_composites(checkpoint)), checkpoint);
  }
}

TEST(Composites, FoldIntoDtypesThatSafetensorsHas) {
  EXPECT_EQ(fold_composites(quantized(DType::qi8, {4}, {1, 2, 3, 4})).at("q").dtype(), DType::i8);
  const Checkpoint packed = fold_composites(quantized(DType::qu4x2, {2, 4}, {1, 2, 3, 4}));
  EXPECT_EQ(packed.at("q").dtype(), DType::u8);
  EXPECT_EQ(packed.at("q").shape(), (Shape{4}));
  EXPECT_TRUE(packed.composites.empty());
}

TEST(Composites, FoldAStridedViewToo) {
  Checkpoint checkpoint = quantized(DType::qu8, {2, 3}, {0, 1, 2, 3, 4, 5});
  checkpoint.tensors.replace("q", checkpoint.at("q").transpose());
  checkpoint.composites[0].shape = Shape{3, 2};
  const Checkpoint back = unfold_composites(fold_composites(checkpoint));
  EXPECT_EQ(test::values_of<std::uint8_t>(back.at("q")), (std::vector<std::uint8_t>{0, 3, 1, 4, 2, 5}));
}

TEST(Composites, AreForgottenIfAPartIsGone) {
  Checkpoint checkpoint = sparse();
  StateDict less;
  less.insert("s.values", checkpoint.at("s.values"));
  checkpoint.tensors = less;
  EXPECT_FALSE(fold_composites(checkpoint).metadata.contains(kCompositesKey));
}

TEST(Composites, SurviveASafetensorsFile) {
  const test::TempDir dir;
  const Checkpoint checkpoint = quantized(DType::qu8, {4}, {1, 2, 3, 4});
  save(checkpoint, dir / "q.safetensors");
  const Checkpoint back = open(dir / "q.safetensors");
  EXPECT_EQ(back.at("q").dtype(), DType::qu8);
  ASSERT_EQ(back.composites.size(), 1u);
  EXPECT_EQ(back.composites[0].scale, 0.1);
}

std::string shape_of_rank(std::size_t rank) {  // the shape has four elements
  std::string text = "[4";
  while (--rank > 0) text += ",1";
  return text + "]";
}

// Anybody can write metadata.
TEST(Composites, LeavesMetadataThatDoesNotFitAndSaysSo) {
  const auto refused = [](const std::string& text) {
    SCOPED_TRACE(text);
    Checkpoint checkpoint = fold_composites(quantized(DType::qu8, {4}, {1, 2, 3, 4}));
    checkpoint.metadata[kCompositesKey] = text;
    const Checkpoint back = unfold_composites(checkpoint);
    EXPECT_TRUE(test::has_note(back, "does not fit the tensors"));
    EXPECT_EQ(back.metadata.at(kCompositesKey), text);
    EXPECT_EQ(back.at("q").dtype(), DType::u8);
    EXPECT_TRUE(back.composites.empty());
  };
  const auto entry = [](const std::string& name, const std::string& layout, const std::string& shape,
                        const std::string& parts, const std::string& more) {
    return "[{\"name\":\"" + name + "\",\"layout\":\"" + layout + "\",\"shape\":" + shape + ",\"parts\":" + parts +
           more + "}]";
  };
  refused("");
  refused("[]");
  refused("{}");
  refused("[1]");
  refused("[{}]");
  refused(std::string(100'000, '['));
  refused(entry("q", "quantized", "[4]", "[]", ",\"dtype\":\"QU8\",\"scale\":1,\"zero_point\":0"));
  refused(entry("q", "quantized", "[4]", "[\"x\"]", ",\"dtype\":\"QU8\""));
  refused(entry("q", "quantized", "[5]", "[\"q\"]", ",\"dtype\":\"QU8\""));
  refused(entry("q", "quantized", "[4]", "[\"q\"]", ",\"dtype\":\"QI32\""));
  refused(entry("q", "quantized", "[4]", "[\"q\"]", ",\"dtype\":\"F32\""));
  refused(entry("q", "quantized", "[4]", "[\"q\"]", ""));
  refused(entry("q", "quantized", "[4]", "[\"q\"]", ",\"dtype\":\"QU8\",\"axis\":1"));
  refused(entry("q", "quantized", "[-4]", "[\"q\"]", ",\"dtype\":\"QU8\""));
  refused(entry("q", "quantized", "[4294967296,4294967296]", "[\"q\"]", ",\"dtype\":\"QU8\""));
  refused(entry("q", "quantized", "[4]", "[\"q\"]", ",\"dtype\":\"QI8\""));
  refused(entry("s", "sparse_coo", "[4]", "[\"s.indices\"]", ""));
  refused(entry("q", "quantized", shape_of_rank(65), "[\"q\"]", ",\"dtype\":\"QU8\""));
  Checkpoint checkpoint = fold_composites(quantized(DType::qu8, {4}, {1, 2, 3, 4}));
  checkpoint.metadata[kCompositesKey] =
      entry("q", "quantized", shape_of_rank(64), "[\"q\"]", ",\"dtype\":\"QU8\",\"scale\":1,\"zero_point\":0");
  EXPECT_EQ(unfold_composites(checkpoint).composites.at(0).shape.rank(), 64u);
}

}  // namespace
}  // namespace ballast
