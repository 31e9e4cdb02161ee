#include "kernels/ggml/decode.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/cast.hpp"
#include "kernels/cast_simd.hpp"
#include "kernels/ggml/decode_plain.hpp"
#include "kernels/ggml/tables.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast::kernels {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<DType> block_types() {
  std::vector<DType> types;
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.kind == DTypeKind::ggml) types.push_back(type.dtype);
  }
  return types;
}

// Any bytes are blocks; one scale in thirty is Inf or NaN.
Bytes random_blocks(DType type, std::size_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(type) * 1000 + count);
  Bytes blocks(count * info(type).block_bytes);
  for (std::byte& b : blocks) b = static_cast<std::byte>(random());
  return blocks;
}

std::vector<float> decode(DType type, std::span<const std::byte> blocks) {
  std::vector<float> out(blocks.size() / info(type).block_bytes * info(type).block_elements);
  decode_blocks(type, blocks, out);
  return out;
}

std::vector<float> decode_plainly(DType type, std::span<const std::byte> blocks) {
  const DTypeInfo& block = info(type);
  std::vector<float> out(blocks.size() / block.block_bytes * block.block_elements);
  for (std::size_t i = 0; i * block.block_bytes < blocks.size(); ++i)
    plain::decoder(type)(reinterpret_cast<const std::uint8_t*>(blocks.data()) + i * block.block_bytes,
                         out.data() + i * block.block_elements);
  return out;
}

bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Reports the first difference and how many there are.
void expect_same(DType type, std::span<const float> got, std::span<const float> want) {
  ASSERT_EQ(got.size(), want.size()) << name(type);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (is_same(got[i], want[i]) || wrong++ > 0) continue;
    ADD_FAILURE() << name(type) << " element " << i << " is " << got[i] << ", not " << want[i];
  }
  EXPECT_EQ(wrong, 0u) << name(type);
}

Bytes cast_to(DType type, std::span<const float> floats) {
  Bytes out(floats.size() * info(type).block_bytes);
  cast(DType::f32, type, std::as_bytes(floats), out);
  return out;
}

class GgmlDecodeOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

INSTANTIATE_TEST_SUITE_P(Highway, GgmlDecodeOnTarget, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST_P(GgmlDecodeOnTarget, GivesTheBitsOfGgml) {
  std::size_t files = 0;
  for (const auto& path : test::vector_files("ggml", ".decode.blocks")) {
    const std::string type_name = path.filename().string().substr(0, path.filename().string().find('.'));
    const auto type = dtype_from_name(type_name);
    ASSERT_TRUE(type) << type_name;
    const std::string blocks = test::read_whole_file(path);
    const std::string want = test::read_whole_file(path.parent_path() / (type_name + ".decode.f32"));
    const std::vector<float> got = decode(*type, std::as_bytes(std::span(blocks)));
    ASSERT_EQ(got.size() * sizeof(float), want.size()) << type_name;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size()), 0) << type_name;
    ++files;
  }
  EXPECT_GE(files, 29u);
}

TEST_P(GgmlDecodeOnTarget, AgreesWithThePlainLoopsOnAnyBytes) {
  for (const DType type : block_types()) {
    for (const std::size_t count : {1u, 2u, 3u, 500u}) {
      const Bytes blocks = random_blocks(type, count);
      expect_same(type, decode(type, blocks), decode_plainly(type, blocks));
    }
  }
}

TEST_P(GgmlDecodeOnTarget, AgreesWithThePlainLoopsIfEveryScaleIsZeroInfiniteOrNan) {
  for (const DType type : block_types()) {
    for (const int scale : {0x0000, 0x8000, 0x0001, 0x7C00, 0xFC00, 0x7E00, 0xFD01}) {
      // All 16-bit words of the blocks have this value, so the scale has it too, wherever it lies.
      Bytes blocks(info(type).block_bytes * std::size_t{8});
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(scale >> i % 2 * 8);
      expect_same(type, decode(type, blocks), decode_plainly(type, blocks));
    }
  }
}

TEST_P(GgmlDecodeOnTarget, RoundsToF16AndBf16AsACastFromF32Does) {
  for (const DType type : block_types()) {
    for (const DType to : {DType::f16, DType::bf16}) {
      for (const std::size_t count : {1u, 7u, 300u}) {
        const Bytes blocks = random_blocks(type, count);
        Bytes got(count * info(type).block_elements * info(to).block_bytes);
        decode_blocks(type, blocks, to, got);
        EXPECT_EQ(got, cast_to(to, decode(type, blocks))) << name(type) << " to " << name(to) << ", " << count;
      }
    }
  }
}

TEST_P(GgmlDecodeOnTarget, StreamsTheSameBytesThatItWritesOtherwise) {
  for (const DType type : {DType::q6_k, DType::iq2_xs}) {
    const std::size_t in_one_go = 1000 * info(type).block_bytes;
    const Bytes blocks = random_blocks(type, kStreamCastFromBytes / sizeof(float) / 256 + 3);
    Bytes want;
    for (std::size_t first = 0; first < blocks.size(); first += in_one_go) {
      const auto some = std::span(blocks).subspan(first, std::min(in_one_go, blocks.size() - first));
      const Bytes part = cast_to(DType::f32, decode(type, some));
      want.insert(want.end(), part.begin(), part.end());
    }
    for (const std::size_t askew : {0u, 16u, 63u}) {
      Bytes room(want.size() + 256, std::byte{0x55});
      std::byte* out = room.data() + 64 + (0 - reinterpret_cast<std::uintptr_t>(room.data())) % 64 + askew;
      decode_blocks(type, blocks, DType::f32, {out, want.size()});
      EXPECT_EQ(std::memcmp(out, want.data(), want.size()), 0) << name(type) << ", " << askew << " bytes askew";
      EXPECT_EQ(out[-1], std::byte{0x55});
      EXPECT_EQ(out[want.size()], std::byte{0x55});
    }
  }
}

TEST_P(GgmlDecodeOnTarget, NeedsNoAlignmentAndWritesNothingElse) {
  for (const DType type : block_types()) {
    const Bytes blocks = random_blocks(type, 3);
    const Bytes want = cast_to(DType::f32, decode(type, blocks));
    Bytes in(blocks.size() + 1), out(want.size() + 2, std::byte{0x55});
    std::copy(blocks.begin(), blocks.end(), in.begin() + 1);
    decode_blocks(type, std::span(in).subspan(1), DType::f32, std::span(out).subspan(1, want.size()));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), out.begin() + 1)) << name(type);
    EXPECT_EQ(out.front(), std::byte{0x55}) << name(type);
    EXPECT_EQ(out.back(), std::byte{0x55}) << name(type);
  }
}

TEST(GgmlDecode, DecodesEveryTypeThatGgmlHas) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.ggml_id < 0) continue;
    EXPECT_TRUE(can_decode(type.dtype)) << type.name;
  }
}

TEST(GgmlDecode, CastsTheTypesThatAreNotBlocks) {
  const std::int16_t values[] = {-3, 0, 32767};
  std::vector<float> out(3);
  decode_blocks(DType::i16, std::as_bytes(std::span(values)), out);
  EXPECT_EQ(out, (std::vector<float>{-3, 0, 32767}));
}

TEST(GgmlDecode, DecodesNothingToNothing) { EXPECT_NO_THROW(decode_blocks(DType::q4_k, {}, std::span<float>())); }

TEST(GgmlDecode, RefusesATypeWithoutValuesByItsName) {
  const Bytes bytes(8);
  std::vector<float> out(1);
  EXPECT_ERROR(decode_blocks(DType::c64, bytes, out), Errc::unsupported, "C64 cannot be decoded");
  Bytes wide(8 * 32);
  EXPECT_ERROR(decode_blocks(DType::q4_0, Bytes(18), DType::f64, wide), Errc::unsupported,
               "Q4_0 cannot be decoded to F64");
}

TEST(GgmlDecode, RefusesSizesThatDoNotFitTogether) {
  std::vector<float> out(32);
  EXPECT_ERROR(decode_blocks(DType::q4_0, Bytes(19), out), Errc::invalid_argument,
               "19 bytes of Q4_0 do not decode to 128 bytes of F32");
  EXPECT_ERROR(decode_blocks(DType::q4_0, Bytes(36), out), Errc::invalid_argument,
               "36 bytes of Q4_0 do not decode to 128 bytes of F32");
}

template <class Grid>
void expect_grid(const Json& tables, const char* table_name, const Grid& grid) {
  const Json::List& rows = tables.at(table_name).list();
  ASSERT_EQ(rows.size(), grid.size()) << table_name;
  std::size_t r = 0;
  for (const Json& row : rows) {
    std::size_t i = 0;
    for (const Json& value : row.list())
      EXPECT_EQ(static_cast<std::int8_t>(grid[r] >> 8 * i++), value.integer()) << table_name << ' ' << r;
    EXPECT_EQ(i, sizeof grid[r]) << table_name;
    ++r;
  }
}

TEST(GgmlTables, AreThoseOfGgml) {
  const Json tables = test::read_json(test::vector_path("ggml/tables.json"));
  expect_grid(tables, "iq2xxs_grid", kIq2XxsGrid);
  expect_grid(tables, "iq2xs_grid", kIq2XsGrid);
  expect_grid(tables, "iq2s_grid", kIq2SGrid);
  expect_grid(tables, "iq3xxs_grid", kIq3XxsGrid);
  expect_grid(tables, "iq3s_grid", kIq3SGrid);
  expect_grid(tables, "iq1s_grid", kIq1SGrid);
  for (std::size_t i = 0; i < 128; ++i)
    EXPECT_EQ(even_signs(static_cast<std::uint32_t>(i)), tables.at("ksigns_iq2xs").list().at(i).count());
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(kIq4Values[i], tables.at("kvalues_iq4nl").list().at(i).integer());
    EXPECT_EQ(kFp4Values[i], tables.at("kvalues_mxfp4").list().at(i).integer());
  }
}

TEST(GgmlTables, HaveAByteForEachSign) {
  EXPECT_EQ(kSignBytes[0b1000'0001], 0xFF00'0000'0000'00FF);
  EXPECT_EQ(kEvenSignBytes[0b000'0001], 0xFF00'0000'0000'00FF);
  EXPECT_EQ(kEvenSignBytes[0b000'0011], 0x0000'0000'0000'FFFF);
}

TEST(GgmlTables, HoldHalfOfEachScale) {
  EXPECT_EQ(half_e8m0(0), 0x1p-128F);
  EXPECT_EQ(half_e8m0(1), 0x1p-127F);
  EXPECT_EQ(half_e8m0(128), 1.0F);
  EXPECT_EQ(half_e8m0(255), 0x1p127F);
  EXPECT_EQ(half_ue4m3(0), 0.0F);
  EXPECT_EQ(half_ue4m3(0x01), 0x1p-10F);
  EXPECT_EQ(half_ue4m3(0x38), 0.5F);
  EXPECT_EQ(half_ue4m3(0x7E), 224.0F);
  EXPECT_EQ(half_ue4m3(0x7F), 0.0F);
  EXPECT_EQ(half_ue4m3(0xB8), 0.5F);
}

// Returns the bytes of each tensor in a file of the vectors, at the offsets that the expectations state.
std::vector<std::pair<DType, Bytes>> tensors_of(const std::string& file) {
  const std::string path = test::vector_path("gguf/" + file), bytes = test::read_whole_file(path);
  const Json expected = test::read_json(path + ".expected.json");
  const std::uint64_t data = expected.at("data_offset").count();
  std::vector<std::pair<DType, Bytes>> tensors;
  for (const Json& tensor : expected.at("tensors").list()) {
    const auto raw =
        std::as_bytes(std::span(bytes)).subspan(data + tensor.at("offset").count(), tensor.at("nbytes").count());
    tensors.emplace_back(*dtype_from_name(tensor.at("type").text()), Bytes(raw.begin(), raw.end()));
  }
  return tensors;
}

TEST(SwapBlockScales, TurnsABigEndianFileIntoItsTwin) {
  auto big = tensors_of("big_endian_quant.gguf");
  const auto little = tensors_of("little_endian_twin.gguf");
  ASSERT_EQ(big.size(), little.size());
  for (std::size_t i = 0; i < big.size(); ++i) {
    swap_block_scales(big[i].first, big[i].second);
    EXPECT_EQ(big[i], little[i]) << name(big[i].first);
  }
}

TEST(SwapBlockScales, UndoesItself) {
  for (const DType type : block_types()) {
    const Bytes blocks = random_blocks(type, 3);
    Bytes swapped = blocks;
    swap_block_scales(type, swapped);
    const bool has_wide_fields = type != DType::mxfp4 && type != DType::nvfp4 && type != DType::iq1_m;
    EXPECT_EQ(swapped != blocks, has_wide_fields) << name(type);
    swap_block_scales(type, swapped);
    EXPECT_EQ(swapped, blocks) << name(type);
  }
}

TEST(SwapBlockScales, SwapsEveryWideFieldOfABlock) {
  Bytes block(info(DType::q8_k).block_bytes);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i % 251);
  swap_block_scales(DType::q8_k, block);
  for (const auto& [at, from] : {std::pair{0, 3}, {3, 0}, {4, 4}, {259, 259}, {260, 261}, {291, 290}})
    EXPECT_EQ(static_cast<int>(block[static_cast<std::size_t>(at)]), from % 251) << at;
}

}  // namespace
}  // namespace ballast::kernels
