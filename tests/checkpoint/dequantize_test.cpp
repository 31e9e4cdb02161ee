// Weights that other programs keep quantized, as the numbers that they stand for.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ballast/ballast.hpp>

#include "builders/safetensors_file.hpp"
#include "checkpoint/packed_model.hpp"
#include "support/expect_error.hpp"
#include "support/json_file.hpp"
#include "support/vectors.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::vector_path("quantized")))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::vector<std::byte> bytes_of_tensor(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  return bytes;
}

// How many ULP lie between two values; -0 is 0, and any NaN is like any other.
std::int64_t distance(DType dtype, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sign = dtype == DType::f32 ? 0x80000000u : 0x8000u;
  const std::uint32_t infinity = dtype == DType::f32 ? 0x7F800000u : dtype == DType::bf16 ? 0x7F80u : 0x7C00u;
  if ((a & (sign - 1)) > infinity && (b & (sign - 1)) > infinity) return 0;
  const auto order = [&](std::uint32_t bits) {
    return (bits & sign) != 0 ? -static_cast<std::int64_t>(bits & (sign - 1)) : static_cast<std::int64_t>(bits);
  };
  return std::abs(order(a) - order(b));
}

void expect_near(const Tensor& ours, const Tensor& reference, std::int64_t ulp, const std::string& what) {
  ASSERT_EQ(ours.dtype(), reference.dtype()) << what;
  ASSERT_EQ(ours.shape(), reference.shape()) << what;
  const auto a = bytes_of_tensor(ours), b = bytes_of_tensor(reference);
  const std::size_t width = info(ours.dtype()).block_bytes;
  for (std::size_t i = 0; i < a.size(); i += width) {
    std::uint32_t x = 0, y = 0;
    std::memcpy(&x, a.data() + i, width);
    std::memcpy(&y, b.data() + i, width);
    ASSERT_LE(distance(ours.dtype(), x, y), ulp) << what << " " << i / width;
  }
}

class DequantizeVectors : public testing::TestWithParam<std::string> {
 protected:
  fs::path folder() const { return fs::path(test::vector_path("quantized")) / GetParam(); }
  Checkpoint opened() const { return open((folder() / "in").string(), {.dequantize = true}); }
};

TEST_P(DequantizeVectors, GiveTheTensorsOfTheReferenceAndNoOthers) {
  const Json about = test::read_json(folder() / "about.json");
  const std::int64_t ulp = about.at("match").text() == "bit" ? 0 : about.at("ulp").integer();
  const Checkpoint ours = opened(), reference = open((folder() / "expected.safetensors").string());
  EXPECT_FALSE(ours.quantization);
  EXPECT_FALSE(ours.dequantized.empty());
  EXPECT_EQ(ours.size(), reference.size());
  for (const auto& [name, tensor] : reference) {
    ASSERT_TRUE(ours.contains(name)) << name;
    expect_near(ours.at(name), tensor, ulp, std::string(name));
  }
}

TEST_P(DequantizeVectors, AreReadInAnyRangesBySeveralThreads) {
  const Checkpoint ours = opened();
  for (const auto& [name, tensor] : ours) {
    const auto whole = bytes_of_tensor(tensor);
    if (whole.empty()) continue;
    const auto read_ranges = [&, &tensor = tensor, &name = name](unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < 12; ++i) {
        const std::size_t first = random() % whole.size();
        std::vector<std::byte> part(1 + random() % (whole.size() - first));
        tensor.read(first, part);
        EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, part.size()), 0) << name << " from " << first;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 3; ++seed) threads.emplace_back(read_ranges, seed);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(DequantizeVectors, AreWrittenAsTheyAreRead) {
  const TempDir out;
  const Checkpoint ours = opened();
  save(ours, out / "a.safetensors", {.durable = false, .memory_bytes = std::uint64_t{1} << 20});
  EXPECT_TRUE(diff(ours, open(out / "a.safetensors")).equal());
  save(cast(ours, DType::f32), out / "b.safetensors", {.durable = false});
}

INSTANTIATE_TEST_SUITE_P(Vectors, DequantizeVectors, testing::ValuesIn(cases()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

using Model = test::PackedModel;

constexpr const char* kF32 = R"({"dtype":"float32","quantization_config":{"quant_method":"fp8"}})";

SafetensorsFile fp8(const std::vector<std::uint64_t>& shape, const std::vector<std::uint8_t>& codes,
                    const std::vector<std::uint64_t>& scales_shape, const std::vector<float>& scales) {
  return std::move(SafetensorsFile()
                       .values<std::uint8_t>("m.q.weight", "F8_E4M3", shape, codes)
                       .values<float>("m.q.weight_scale_inv", "F32", scales_shape, scales));
}

TEST(Dequantize, ScalesOfZeroInfinityAndNaNPassThrough) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  // 0x38 is 1, 0x00 is 0, 0x7F is NaN
  const auto values =
      Model(fp8({4, 2}, {0x38, 0x00, 0x38, 0x00, 0x38, 0x7F, 0xB8, 0x38}, {4, 1}, {0, inf, nan, 1e-45F}), kF32)
          .values("m.q.weight");
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[2], inf);
  EXPECT_TRUE(std::isnan(values[3])) << "0 times infinity";
  EXPECT_TRUE(std::isnan(values[4]) && std::isnan(values[5]));
  EXPECT_EQ(values[6], -1e-45F) << "subnormals are kept";
}

TEST(Dequantize, BlocksThatDoNotDivideEndWithTheWeight) {
  const std::vector<std::uint8_t> ones(5 * 7, 0x38);
  const auto values =
      Model(fp8({5, 7}, ones, {2, 3}, {1, 2, 3, 4, 5, 6}),
            R"({"dtype":"float32","quantization_config":{"quant_method":"fp8","weight_block_size":[3,3]}})")
          .values("m.q.weight");
  EXPECT_EQ(values[2 * 7 + 2], 1);
  EXPECT_EQ(values[2 * 7 + 6], 3);
  EXPECT_EQ(values[3 * 7 + 3], 5);
  EXPECT_EQ(values[4 * 7 + 6], 6);
}

TEST(Dequantize, AWeightKeepsItsPlaceAndAllElsePassesUnchanged) {
  const Model model(SafetensorsFile()
                        .values<float>("a.first", "F32", {1}, {1})
                        .values<std::uint8_t>("m.q.weight", "F8_E4M3", {1, 1}, {0x38})
                        .values<float>("m.q.bias", "F32", {1}, {2})
                        .values<float>("m.q.input_scale", "F32", {}, {9})
                        .values<float>("m.q.weight_scale", "F32", {}, {3})
                        .values<float>("z.last", "F32", {1}, {4}),
                    kF32);
  const Checkpoint checkpoint = model.opened();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : checkpoint) names.emplace_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"a.first", "m.q.weight", "m.q.bias", "z.last"}));
  EXPECT_EQ(checkpoint.dequantized, "fp8");
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text, "\"m.q.input_scale\" is for activations and left out");
}

TEST(Dequantize, AFloatBesideItsCodesIsKeptAndSaid) {
  const Model model(SafetensorsFile()
                        .tensor("m.q.weight", "F16", {32, 32})
                        .tensor("m.q.qweight", "I32", {4, 32})
                        .tensor("m.q.qzeros", "I32", {1, 4})
                        .tensor("m.q.scales", "F16", {1, 32}));
  const Checkpoint checkpoint = model.opened();
  EXPECT_EQ(checkpoint.at("m.q.weight").dtype(), DType::f16);
  EXPECT_TRUE(checkpoint.contains("m.q.qweight"));
  EXPECT_TRUE(checkpoint.quantization) << "the codes are still no weights";
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text,
            "the quantized weight \"m.q.weight\" stays as its parts: another tensor has that name");
}

TEST(Dequantize, AWeightOfWhichAPartIsMissingStaysAsItIsAndIsSaid) {
  const Model model(SafetensorsFile().tensor("m.q.qweight", "I32", {4, 8}).tensor("m.q.scales", "F16", {1, 8}));
  const Checkpoint checkpoint = model.opened();
  EXPECT_TRUE(checkpoint.contains("m.q.qweight"));
  ASSERT_EQ(checkpoint.notes.size(), 1u);
  EXPECT_EQ(checkpoint.notes[0].text,
            "the quantized weight \"m.q.weight\" stays as its parts: \"m.q.qzeros\" is missing");
  EXPECT_ERROR(cast(checkpoint, DType::f32), Errc::unsupported, "is quantized with gptq");
}

TEST(Dequantize, NothingToDoIsNoError) {
  const Model model(SafetensorsFile().tensor("w", "F32", {2}));
  EXPECT_EQ(model.opened().size(), 1u);
  EXPECT_EQ(model.opened().dequantized, "");
}

TEST(Dequantize, TorchsOwnQuantizedTensorsBecomeFloatsAndSparseOnesStay) {
  const Checkpoint quantized = open(test::vector_path("torch2/quantized.pt"), {.dequantize = true});
  EXPECT_TRUE(quantized.composites.empty());
  for (const auto& [name, tensor] : quantized) EXPECT_EQ(tensor.dtype(), DType::f32) << name;
  const std::string sparse = test::vector_path("torch2/sparse.pt");
  EXPECT_EQ(open(sparse, {.dequantize = true}).size(), open(sparse).size());
}

// What contradicts itself is refused, with the name of the weight.
struct Hostile {
  const char* name;
  SafetensorsFile file;
  const char* config;
  Errc code;
  const char* message;
};

SafetensorsFile gptq(std::vector<std::uint64_t> words, std::vector<std::uint64_t> zeros,
                     std::vector<std::uint64_t> scales) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.qweight", "I32", words)
                       .tensor("m.q.qzeros", "I32", zeros)
                       .tensor("m.q.scales", "F16", scales));
}

SafetensorsFile nf4(const std::string& state, std::uint64_t bytes, std::uint64_t blocks, std::uint64_t map = 16) {
  const std::vector<char> text(state.begin(), state.end());
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight", "U8", {bytes, 1})
                       .tensor("m.q.weight.absmax", "F32", {blocks})
                       .tensor("m.q.weight.quant_map", "F32", {map})
                       .values<char>("m.q.weight.quant_state.bitsandbytes__nf4", "U8", {text.size()}, text));
}

SafetensorsFile packed(std::vector<std::int64_t> shape, std::vector<std::uint64_t> words,
                       std::vector<std::uint64_t> scales) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight_packed", "I32", words)
                       .values<std::int64_t>("m.q.weight_shape", "I64", {shape.size()}, shape)
                       .tensor("m.q.weight_scale", "BF16", scales));
}

SafetensorsFile bitmask(std::uint64_t values, std::vector<std::uint8_t> mask) {
  return std::move(SafetensorsFile()
                       .tensor("m.q.weight.compressed", "BF16", {values})
                       .values<std::uint8_t>("m.q.weight.bitmask", "U8", {2, 1}, mask)
                       .values<std::int64_t>("m.q.weight.shape", "I64", {2}, {2, 4}));
}

constexpr const char* kState = R"({"quant_type":"nf4","blocksize":64,"dtype":"float16","shape":[16,8]})";
constexpr const char* kInt4 =
    R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"g":{"weights":{"num_bits":4,"group_size":8}}}}})";

std::vector<Hostile> hostile() {
  const auto state = [](const std::string& text) { return nf4(text, 64, 2); };
  return {
      {"scales of another shape", fp8({4, 4}, std::vector<std::uint8_t>(16), {3, 3}, std::vector<float>(9)), kF32,
       Errc::malformed, "of shape [4, 4] has \"_scale_inv\" of shape [3, 3]"},
      {"no scales at all", fp8({4, 4}, std::vector<std::uint8_t>(16), {0}, {}), kF32, Errc::malformed,
       "\"m.q.weight\""},
      {"scales for columns only", fp8({4, 4}, std::vector<std::uint8_t>(16), {2}, {1, 2}), kF32, Errc::malformed,
       "\"m.q.weight\""},
      {"other zero points", gptq({4, 32}, {2, 4}, {1, 32}), "", Errc::malformed,
       "has 1 groups of scales, and 2 of zero points"},
      {"zero points of no number of bits", gptq({4, 32}, {1, 5}, {1, 32}), "", Errc::malformed,
       "has zero points of shape [1, 5]"},
      {"no groups", gptq({4, 32}, {0, 4}, {0, 32}), "", Errc::malformed, "has no groups"},
      {"groups that do not divide", gptq({4, 32}, {7, 4}, {7, 32}), "", Errc::malformed, "has 7 groups for 32 inputs"},
      {"no number of bits in words", gptq({4, 8}, {1, 1}, {1, 8}), "", Errc::unsupported, "no configuration says"},
      {"a kernel's layout", gptq({4, 8}, {1, 1}, {1, 8}),
       R"({"quantization_config":{"quant_method":"gptq","bits":4,"checkpoint_format":"marlin"}})", Errc::unsupported,
       "is laid out for a kernel (marlin)"},
      {"a state that is no JSON", state("{\"shape\":"), "", Errc::malformed, "has a quant_state that cannot be read"},
      {"a key twice", state(R"({"shape":[1],"shape":[16,8],"blocksize":64,"dtype":"float16"})"), "", Errc::malformed,
       "quant_state"},
      {"another shape", state(R"({"blocksize":64,"dtype":"float16","shape":[16,9]})"), "", Errc::malformed,
       "of 144 elements is kept in 64 bytes"},
      {"a shape that does not fit", state(R"({"blocksize":64,"dtype":"float16","shape":[4294967296,4294967296,4]})"),
       "", Errc::malformed, "m.q.weight"},
      {"a block of nothing", state(R"({"blocksize":0,"dtype":"float16","shape":[16,8]})"), "", Errc::malformed,
       "has a blocksize of 0"},
      {"a block of 63", state(R"({"blocksize":63,"dtype":"float16","shape":[16,8]})"), "", Errc::malformed,
       "has a blocksize of 63"},
      {"another dtype", state(R"({"blocksize":64,"dtype":"complex64","shape":[16,8]})"), "", Errc::malformed,
       "has the dtype \"complex64\""},
      {"an offset that is no number",
       state(R"({"blocksize":64,"dtype":"float16","shape":[16,8],"nested_blocksize":256,"nested_offset":"NaN"})"), "",
       Errc::malformed, "quant_state"},
      {"an offset that no float has",
       state(R"({"blocksize":64,"dtype":"float16","shape":[16,8],"nested_blocksize":256,"nested_offset":1e300})"), "",
       Errc::malformed, "has a nested_offset of 1e+300"},
      {"a block that is a text", state(R"({"blocksize":"64","dtype":"float16","shape":[16,8]})"), "", Errc::malformed,
       "has a blocksize of \"64\""},
      {"too few scales", nf4(kState, 64, 1), "", Errc::malformed, "has 1 scales for 2 groups"},
      {"a short table", nf4(kState, 64, 2, 15), "", Errc::malformed, "has \".quant_map\" of F32 [15]"},
      {"more rows than words", packed({64, 8}, {4, 1}, {64, 1}), kInt4, Errc::malformed,
       "of shape [64, 8] is kept in I32 [4, 1]"},
      {"more columns than words", packed({4, 1 << 20}, {4, 1}, {4, 1}), kInt4, Errc::malformed, "columns in 1 words"},
      {"a negative shape", packed({4, -8}, {4, 1}, {4, 1}), kInt4, Errc::malformed, "has the shape [4, -8]"},
      {"a shape of one number", packed({4}, {4, 1}, {4, 1}), kInt4, Errc::malformed, "\"m.q.weight\""},
      {"no number of bits", packed({4, 1}, {4, 1}, {4, 1}), "", Errc::unsupported,
       "no configuration says how many bits"},
      {"no bits of a bitmask too many", bitmask(4, {0x0F, 0x10}), "", Errc::malformed,
       "has a bit behind the last column of row 1"},
      {"values without a bit", bitmask(5, {0x0F, 0x00}), "", Errc::malformed, "has 5 values for 4 bits"},
      {"a scheme that is not decoded",
       std::move(SafetensorsFile().tensor("m.q.codes", "I16", {4, 4, 1}).tensor("m.q.codebooks", "F16", {1, 16, 1, 8})),
       R"({"quantization_config":{"quant_method":"aqlm"}})", Errc::unsupported,
       "quantized with aqlm, which is not decoded"},
      {"a scheme that only the configuration knows", std::move(SafetensorsFile().tensor("m.q.odd", "I16", {4, 4})),
       R"({"quantization_config":{"quant_method":"spqr"}})", Errc::unsupported,
       "quantized with spqr, which is not decoded"},
      {"factors for the inputs", std::move(fp8({1, 1}, {0x38}, {1}, {1}).tensor("m.q.pre_quant_scale", "F32", {1})),
       kF32, Errc::unsupported, "goes with factors for its inputs"},
      {"blocks for a kernel of a graphics card",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight", "I8", {2, 2})
                     .values<float>("m.q.SCB", "F32", {2}, {1, 1})
                     .values<std::uint8_t>("m.q.weight_format", "U8", {}, {2})),
       "", Errc::unsupported, "weight_format"},
  };
}

TEST(Dequantize, RefusesPartsThatContradictEachOther) {
  for (const Hostile& row : hostile()) {
    const Model model(row.file, row.config);
    EXPECT_ERROR(bytes_of_tensor(model.opened().at("m.q.weight")), row.code, row.message) << row.name;
  }
}

// Where several readings fit, none is taken.
TEST(Dequantize, GuessesNothing) {
  const std::vector<std::uint8_t> ones(800, 0x38);
  const auto some = [&](std::size_t count) {
    return std::vector<std::uint8_t>(ones.begin(), ones.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const std::string state = kState;
  const std::vector<char> text(state.begin(), state.end());
  const auto in_bytes = [&] {
    return std::move(SafetensorsFile()
                         .values<std::uint8_t>("m.q.weight", "U8", {2, 4}, some(8))
                         .values<float>("m.q.weight_scale", "F32", {1}, {2}));
  };
  struct Case {
    const char* what;
    SafetensorsFile file;
    const char* config;
  };
  const std::vector<Case> cases = {
      {"blocks of 100, or of 128 of which one is cut", fp8({200, 4}, some(800), {2, 1}, {1, 2}), ""},
      {"BitNet's scale multiplies or divides", in_bytes(), ""},
      {"bytes of another scheme", in_bytes(), R"({"quantization_config":{"quant_method":"modelopt"}})"},
      {"nested scales of which the state says nothing",
       std::move(SafetensorsFile()
                     .tensor("m.q.weight", "U8", {64, 1})
                     .tensor("m.q.weight.absmax", "U8", {2})
                     .tensor("m.q.weight.quant_map", "F32", {16})
                     .values<char>("m.q.weight.quant_state.bitsandbytes__nf4", "U8", {text.size()}, text)),
       ""},
      {"scales for columns of a square",
       std::move(SafetensorsFile()
                     .values<std::uint8_t>("m.q.weight", "I8", {2, 2}, some(4))
                     .values<float>("m.q.SCB", "F32", {1, 2}, {1, 2})),
       ""},
  };
  for (const Case& row : cases) {
    const Model model(row.file, row.config);
    try {
      model.opened();
      ADD_FAILURE() << row.what;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::malformed || error.code() == Errc::unsupported) << row.what << error.what();
      EXPECT_NE(error.message().find("m.q.weight"), std::string::npos) << row.what << error.what();
    }
  }
}

TEST(Dequantize, CodesWithoutTheirScalesAreNoWeights) {
  const Model model(std::move(fp8({1, 2}, {0x38, 0x38}, {1, 1}, {3}).tensor("m.k.weight", "F8_E4M3", {4, 4})), kF32);
  EXPECT_ERROR(cast(open(model.folder.path()), {{"m.k*", DType::f32}}), Errc::unsupported, "m.k.weight");
  const Checkpoint checkpoint = model.opened();
  EXPECT_EQ(checkpoint.at("m.q.weight").values<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(checkpoint.at("m.k.weight").dtype(), DType::f8_e4m3);
  EXPECT_TRUE(checkpoint.quantization);
  EXPECT_EQ(checkpoint.notes.back().text,
            "the quantized weight \"m.k.weight\" stays as its parts: its other parts are missing");
  EXPECT_ERROR(cast(checkpoint, DType::f32), Errc::unsupported, "m.k.weight");
}

TEST(Dequantize, ZeroPointsOfAutoRoundsOwnFormAreThemselves) {
  const auto first_value = [](const char* packing) {
    SafetensorsFile file;
    file.values<std::uint32_t>("m.q.qweight", "I32", {4, 32}, std::vector<std::uint32_t>(128, 0x99999999))
        .values<std::uint32_t>("m.q.qzeros", "I32", {1, 4}, std::vector<std::uint32_t>(4, 0x77777777))
        .values<std::uint16_t>("m.q.scales", "F16", {1, 32}, std::vector<std::uint16_t>(32, 0x3C00));
    const std::string config = R"({"quantization_config":{"quant_method":"auto-round","bits":4,"packing_format":")" +
                               std::string(packing) + "\"}}";
    return Model(file, config).values("m.q.weight")[0];
  };
  EXPECT_EQ(first_value("auto_round:auto_gptq"), 1);
  EXPECT_EQ(first_value("auto_round"), 2);
  EXPECT_EQ(first_value("auto_round:gptqmodel"), 2);
}

TEST(Dequantize, GroupsOfColumnsAreComparedWithBothScalesAndZeroPoints) {
  SafetensorsFile file = packed({4, 8}, {4, 1}, {4, 4});
  file.tensor("m.q.weight_zero_point", "I8", {4, 1})
      .values<std::int32_t>("m.q.weight_g_idx", "I32", {8}, {0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_ERROR(Model(file, kInt4).opened(), Errc::malformed, "has \"_zero_point\" of shape [4, 1]");
}

TEST(Dequantize, SettingsOfManyGroupsAreAllRead) {
  const auto config = [](int groups, const char* last) {
    std::string text = R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{)";
    for (int i = 0; i < groups; ++i)
      text += "\"g" + std::to_string(i) + R"(":{"targets":["x"],"weights":{"num_bits":8}},)";
    return text + last + "}}}";
  };
  const auto file = packed({4, 8}, {4, 1}, {4, 4});
  const char* const kOfFour = R"("last":{"weights":{"num_bits":4}})";
  EXPECT_EQ(Model(file, config(300, kOfFour)).opened().at("m.q.weight").shape(),
            Model(file, kInt4).opened().at("m.q.weight").shape());
  std::string different;
  for (int i = 1; i < 300; ++i)
    different += "\"h" + std::to_string(i) + R"(":{"weights":{"group_size":)" + std::to_string(i) + "}},";
  EXPECT_ERROR(Model(file, config(0, (different + kOfFour).c_str())).opened(), Errc::limit,
               "more than 256 settings of weights that differ");
}

TEST(Dequantize, TheConfigurationOfAPartOfAPartIsFound) {
  const Model model(fp8({2, 2}, std::vector<std::uint8_t>(4, 0x38), {1, 1}, {2}),
                    R"({"thinker_config":{"text_config":{"quantization_config":{"quant_method":"fp8","bits":8}}}})");
  const Checkpoint packed = open(model.folder.path());
  ASSERT_TRUE(packed.quantization);
  EXPECT_EQ(packed.quantization->evidence, "config.json");
  EXPECT_EQ(packed.quantization->bits, 8u);
}

TEST(Dequantize, ALongRowIsReadInParts) {
  constexpr std::uint64_t kColumns = std::uint64_t{1} << 20;
  const Model model(fp8({1, kColumns}, std::vector<std::uint8_t>(kColumns, 0x38), {1, 1}, {2}), kF32);
  const Tensor weight = model.opened().at("m.q.weight");
  EXPECT_EQ(weight.shape(), (Shape{1, kColumns}));
  EXPECT_LE(weight.storage()->granule(), std::uint64_t{1} << 20);
  EXPECT_EQ(weight.values<float>(), std::vector<float>(kColumns, 2));
}

TEST(Dequantize, LeavesSuchWeightsPackedIfItIsLenient) {
  for (const Hostile& row : hostile()) {
    const Model model(row.file, row.config);
    const Checkpoint checkpoint = model.opened({.lenient = true});
    EXPECT_TRUE(checkpoint.quantization) << row.name;
    EXPECT_EQ(checkpoint.size(), open(model.folder.path()).size()) << row.name;
    ASSERT_FALSE(checkpoint.notes.empty()) << row.name;
    EXPECT_NE(checkpoint.notes.back().text.find("as its parts"), std::string::npos) << checkpoint.notes.back().text;
  }
}

TEST(Dequantize, AnInputOfAGroupThatIsNotThereIsRefusedWhenItIsRead) {
  for (const std::int32_t group : {1, -2, 2147483647}) {
    std::vector<std::int32_t> groups(32, 0);
    groups[5] = group;
    SafetensorsFile file = gptq({4, 32}, {1, 4}, {1, 32});
    file.values<std::int32_t>("m.q.g_idx", "I32", {32}, groups);
    const Model model(file);
    EXPECT_ERROR(bytes_of_tensor(model.opened().at("m.q.weight")), Errc::malformed, "has an input of group");
    const Checkpoint lenient = model.opened({.lenient = true});
    EXPECT_TRUE(lenient.contains("m.q.qweight")) << group;
    ASSERT_FALSE(lenient.notes.empty());
    EXPECT_NE(lenient.notes.back().text.find("has an input of group"), std::string::npos);
  }
}

TEST(Dequantize, ABitThatBecomesAFloatIsWithinTheLimit) {
  OpenOptions options;
  options.limits.max_expansion_bytes = 0;
  const Model honest(nf4(kState, 64, 2));
  EXPECT_EQ(honest.opened(options).at("m.q.weight").nbytes(), 256u);
}

TEST(Dequantize, WorksOnShapesWithoutData) {
  const Model model(nf4(kState, 64, 2));
  const StateDict weights = load(model.folder.path(), {.device = "meta", .open = {.dequantize = true}});
  EXPECT_EQ(weights.at("m.q.weight").shape(), (Shape{16, 8}));
}

}  // namespace
}  // namespace ballast
