// Files that lie, after the list in llama.cpp's own test (its names are in the comments), and other files that ever
// broke a reader of GGUF. Every one of them is refused, at the byte, before anything is reserved.
#include <gtest/gtest.h>

#include <limits>

#include "read_bytes.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::GgufBuilder;
using test::kF32;
using test::kQ4_0;
using test::kQ4_K;
using test::read_gguf;

constexpr std::uint64_t kMinusOne = std::numeric_limits<std::uint64_t>::max();

struct Hostile {
  const char* name;
  GgufBuilder file;
  Errc code;
  std::string message;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileGguf : public testing::TestWithParam<Hostile> {};

TEST_P(HostileGguf, IsRefused) {
  const Hostile& hostile = GetParam();
  const auto error = BALLAST_ERROR_OF(read_gguf(hostile.file));
  EXPECT_TRUE(test::is_error(error, hostile.code, hostile.message));
  ASSERT_TRUE(error);
  ASSERT_TRUE(error->offset());
  EXPECT_LE(*error->offset(), hostile.file.text().size());
}

GgufBuilder with_tensor(const std::vector<std::uint64_t>& dims, const test::GgmlType& type = kF32,
                        std::uint64_t offset = 0) {
  return GgufBuilder().tensor_at("w", type, dims, offset).data(64);
}

const GgufBuilder kOne = GgufBuilder().kv("general.name", "x").tensor("w", kF32, {2, 2});

std::vector<Hostile> header_cases() {
  const auto magic = [](const char* bytes) { return GgufBuilder(kOne).magic(bytes); };
  return {
      {"HEADER_BAD_MAGIC", magic("FUGG"), Errc::unsupported, "never released"},
      {"another_magic", magic("GGUG"), Errc::malformed, "does not begin with \"GGUF\""},
      {"ggml_magic", magic("lmgg"), Errc::unsupported, "came before GGUF"},
      {"ggjt_magic", magic("tjgg"), Errc::unsupported, "came before GGUF"},
      {"HEADER_BAD_VERSION_0", GgufBuilder(kOne).stored_version(0), Errc::unsupported, "version 0"},
      {"HEADER_BAD_VERSION_FUTURE", GgufBuilder(kOne).stored_version(4), Errc::unsupported, "version 4"},
      {"version_of_both_orders", GgufBuilder(kOne).stored_version(0x03000003), Errc::unsupported, "version 50331651"},
      {"HEADER_BAD_N_TENSORS", GgufBuilder().tensor_count(kMinusOne), Errc::malformed,
       "the tensor count is 18446744073709551615"},
      {"HEADER_BAD_N_KV", GgufBuilder().key_count(kMinusOne), Errc::malformed, "the key count is 18446744073709551615"},
      {"count_times_size_wraps", GgufBuilder().tensor_count(kMinusOne / 24 + 2), Errc::malformed, "the tensor count"},
      {"one_key_too_many", GgufBuilder(kOne).key_count(2), Errc::malformed, ""},
      {"one_tensor_too_many", GgufBuilder(kOne).tensor_count(2), Errc::malformed, ""},
  };
}

std::vector<Hostile> kv_cases() {
  const GgufBuilder b;
  const auto key = [&](const std::string& bytes) { return GgufBuilder().raw_key(bytes).data(64); };
  const std::string k = b.string("k");
  const auto array = [&](std::uint32_t type, std::uint64_t count) {
    return GgufBuilder().array("k", type, count, "").data(64);
  };
  const auto arrays = [](const std::string& inner) {
    return GgufBuilder().array("k", test::kArray, 1, inner).data(64);
  };
  const auto old_arrays = [](GgufBuilder file) {
    return file.array("k", test::kArray, 1, file.number(std::uint32_t{test::kU8}) + file.length(0)).data(64);
  };
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += b.number(std::uint32_t{test::kArray}) + b.number(std::uint64_t{1});
  return {
      {"KV_BAD_KEY_SIZE", key(b.number(kMinusOne) + "k"), Errc::malformed, "length of the key is 18446744073709551615"},
      {"KV_EMPTY_KEY", GgufBuilder().kv("", 1u), Errc::malformed, "a key is empty"},
      {"KV_BAD_TYPE", GgufBuilder().kv_raw("k", 13, "x").data(64), Errc::malformed, "key \"k\": value type 13"},
      {"negative_type", GgufBuilder().kv_raw("k", 0xFFFFFFFF, "x").data(64), Errc::malformed, "value type 4294967295"},
      {"KV_BAD_VALUE_SIZE", key(k + b.number(8u) + b.number(std::uint64_t{1} << 40)), Errc::malformed,
       "length of the string is 1099511627776"},
      {"string_of_minus_one", key(k + b.number(8u) + b.number(kMinusOne)), Errc::malformed, "length of the string"},
      {"KV_DUPLICATE_KEY", GgufBuilder().kv("k", 1u).kv("j", 1u).kv("k", 2u), Errc::malformed,
       "key \"k\" is there twice"},
      {"KV_BAD_ALIGN", GgufBuilder().alignment(13), Errc::malformed, "power of two"},
      {"alignment_of_0", GgufBuilder().kv("general.alignment", 0u), Errc::malformed, "general.alignment is the u32 0"},
      {"alignment_of_2_31", GgufBuilder().kv("general.alignment", 1u << 31), Errc::malformed,
       "power of two up to 1048576"},
      {"KV_WRONG_TYPE_ALIGN", GgufBuilder().kv_raw("general.alignment", test::kU64, b.number(std::uint64_t{32})),
       Errc::malformed, "is the u64 32"},
      {"alignment_as_string", GgufBuilder().kv("general.alignment", "32"), Errc::malformed, "is the string 32"},
      {"array_of_numbers_wraps", array(test::kU64, (kMinusOne >> 3) + 2), Errc::malformed, "element count"},
      {"array_of_strings_too_long", array(test::kString, 1'000'000), Errc::malformed, "element count is 1000000"},
      {"array_of_bad_type", array(13, 1), Errc::malformed, "element type 13"},
      {"array_of_arrays_too_long", array(test::kArray, 1'000'000), Errc::malformed, "element count is 1000000"},
      {"array_in_array_too_long", arrays(b.number(std::uint32_t{test::kU32}) + b.number(kMinusOne)), Errc::malformed,
       "element count is 18446744073709551615"},
      {"array_in_array_of_bad_type", arrays(b.number(13u) + b.number(std::uint64_t{1})), Errc::malformed,
       "element type 13"},
      {"array_of_arrays_in_array_too_long", arrays(b.number(std::uint32_t{test::kArray}) + b.number(kMinusOne)),
       Errc::malformed, "element count is 18446744073709551615"},
      {"strings_in_array_too_many", arrays(b.number(std::uint32_t{test::kString}) + b.number(kMinusOne)),
       Errc::malformed, "element count is 18446744073709551615"},
      {"array_of_arrays_of_version_1", old_arrays(GgufBuilder(1)), Errc::unsupported, "an old or big-endian file"},
      {"array_of_arrays_big_endian", old_arrays(GgufBuilder(3, std::endian::big)), Errc::unsupported,
       "an old or big-endian file"},
      {"arrays_too_deep", arrays(deep), Errc::limit, "too deep"},
      {"string_in_array_too_long", GgufBuilder().array("k", test::kString, 1, b.number(kMinusOne)).data(64),
       Errc::malformed, "length of the string"},
      {"key_without_value", GgufBuilder().pad_to(1).raw_key(k + b.number(10u) + "abc"), Errc::malformed,
       "the file ends inside the value"},
  };
}

std::vector<Hostile> tensor_cases() {
  constexpr std::uint64_t kBig = std::uint64_t{4} * 0x7FFFFFFF;
  const GgufBuilder b;
  return {
      {"name_of_minus_one", GgufBuilder().raw_tensor(b.number(kMinusOne) + std::string(64, 'w')), Errc::malformed,
       "length of the tensor's name"},
      {"TENSORS_BAD_N_DIMS", with_tensor({1, 1, 1, 1, 1}), Errc::malformed, "tensor \"w\": has 5 dimensions"},
      {"TENSORS_BAD_SHAPE", with_tensor({kMinusOne}), Errc::malformed, "more elements than 63 bits"},
      {"negative_and_zero", with_tensor({0, std::uint64_t{1} << 63}), Errc::malformed, "more elements than 63 bits"},
      {"TENSORS_NE_TOO_BIG", with_tensor({kBig, kBig}), Errc::malformed, "more elements than 63 bits"},
      {"TENSORS_NBYTES_TOO_BIG", with_tensor({kBig, kBig / 8}), Errc::malformed, "more bytes than 64 bits"},
      {"bytes_past_the_file", with_tensor({1u << 30, 1u << 30}), Errc::malformed,
       "tensor \"w\" has 4611686018427387904 bytes"},
      {"type_removed", with_tensor({32}, {4, 32, 18}), Errc::unsupported, "type 4 was Q4_2"},
      {"type_repacked", with_tensor({32}, {31, 32, 18}), Errc::unsupported, "Q4_0_4_4"},
      {"TENSORS_BAD_TYPE", with_tensor({32}, {0xFFFFFFFF, 1, 1}), Errc::malformed, "type 4294967295"},
      {"TENSORS_BAD_OFFSET", with_tensor({1}, kF32, kMinusOne), Errc::malformed, "no multiple of 32"},
      {"offset_past_the_file", with_tensor({1}, kF32, kMinusOne - 31), Errc::malformed, "tensor \"w\" "},
      {"offset_plus_size_wraps", with_tensor({64}, kF32, kMinusOne - 127), Errc::malformed,
       "tensor \"w\" ends where 64 bits cannot count"},
      {"empty_tensor_far_away", with_tensor({0}, kF32, std::uint64_t{1} << 60), Errc::malformed,
       "tensor \"w\" has 0 bytes from byte"},
      {"empty_tensor_one_byte_away", GgufBuilder().alignment(1).tensor_at("w", kF32, {0}, 65).data(64), Errc::malformed,
       "tensor \"w\" has 0 bytes from byte 65"},
      {"tensor_of_a_byte_past_the_file", with_tensor({1}, test::kI8, 64), Errc::malformed,
       "tensor \"w\" has 1 bytes from byte 64"},
      {"type_of_1024", with_tensor({32}, {1024, 1, 1}), Errc::malformed, "type 1024 is none that ggml has"},
      {"half_a_block", with_tensor({48}, kQ4_0), Errc::malformed, "no whole blocks of Q4_0 (32 each)"},
      {"blocks_across_rows", with_tensor({64, 4}, kQ4_K), Errc::malformed, "rows of 64 elements"},
      {"a_scalar_of_blocks", with_tensor({}, kQ4_0), Errc::malformed, "rows of 1 elements"},
      {"TENSORS_DUPLICATE_NAME", GgufBuilder().tensor("w", kF32, {1}).tensor("w", kF32, {1}), Errc::malformed,
       "tensor \"w\" is there twice"},
      {"TENSORS_INCONSISTENT_ALIGN", GgufBuilder().pad_to(8).tensor("a", kF32, {2}).tensor("b", kF32, {2}),
       Errc::malformed, "tensor \"b\" begins at byte 8 of the data"},
      {"one_range_for_two", GgufBuilder().tensor_at("a", kF32, {8}, 0).tensor_at("b", kF32, {8}, 0).data(64),
       Errc::malformed, "tensor \"b\" shares bytes with tensor \"a\""},
      {"overlap", GgufBuilder().tensor_at("a", kF32, {16}, 0).tensor_at("b", kF32, {8}, 32).data(64), Errc::malformed,
       "shares bytes"},
      {"overlap_out_of_order", GgufBuilder().tensor_at("b", kF32, {8}, 32).tensor_at("a", kF32, {16}, 0).data(64),
       Errc::malformed, "tensor \"b\" shares bytes with tensor \"a\""},
  };
}

std::vector<Hostile> data_cases() {
  return {
      {"DATA_NOT_ENOUGH_DATA", GgufBuilder().tensor_at("w", kF32, {8}, 0).data(31), Errc::malformed,
       "has 32 bytes from byte 0 of the data on, but there are 31"},
      {"no_data_at_all", GgufBuilder().tensor_at("w", kF32, {8}, 0).pad_to(1), Errc::malformed, "but there are 0"},
      {"DATA_BAD_ALIGN", GgufBuilder().alignment(13).tensor("w", kF32, {8}), Errc::malformed, "power of two"},
      {"DATA_INCONSISTENT_ALIGN", GgufBuilder().pad_to(1).tensor("a", kF32, {1}).tensor("b", kF32, {1}).data(64),
       Errc::malformed, "no multiple of 32"},
      {"MEM_SIZE_OVERFLOW",
       GgufBuilder()
           .tensor_at("a", kF32, {std::uint64_t{1} << 60}, 0)
           .tensor_at("b", kF32, {std::uint64_t{1} << 60}, std::uint64_t{1} << 62)
           .data(64),
       Errc::malformed, "tensor \"a\" has 4611686018427387904 bytes"},
      {"sizes_wrap_together", GgufBuilder().tensor_at("a", kF32, {(std::uint64_t{1} << 62) - 1}, 0).data(64),
       Errc::malformed, "tensor \"a\" ends where 64 bits cannot count"},
  };
}

std::string case_name(const testing::TestParamInfo<Hostile>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Header, HostileGguf, testing::ValuesIn(header_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Kv, HostileGguf, testing::ValuesIn(kv_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Tensors, HostileGguf, testing::ValuesIn(tensor_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Data, HostileGguf, testing::ValuesIn(data_cases()), case_name);

// The files of llama.cpp's list that are right, and those that only llama.cpp refuses.
TEST(HostileGgufThatIsNot, Reads) {
  EXPECT_TRUE(read_gguf(GgufBuilder()).checkpoint.tensors.empty());    // HEADER_EMPTY
  EXPECT_EQ(read_gguf(GgufBuilder().kv("k", "v")).fields.size(), 1u);  // KV_SUCCESS
  EXPECT_EQ(read_gguf(kOne).checkpoint.size(), 1u);                    // TENSORS_, DATA_SUCCESS
  EXPECT_EQ(read_gguf(GgufBuilder().alignment(1).tensor("a", kF32, {1}).tensor("b", kF32, {1})).alignment,
            1u);                                                  // CUSTOM_ALIGN
  EXPECT_EQ(read_gguf(GgufBuilder(1).kv("k", "v")).version, 1u);  // HEADER_BAD_VERSION_1
  EXPECT_EQ(read_gguf(GgufBuilder().tensor(std::string(70, 'n'), kF32, {1})).checkpoint.size(),
            1u);                                                                               // TENSORS_BAD_NAME_SIZE
  EXPECT_EQ(read_gguf(GgufBuilder().tensor("z", kF32, {0})).checkpoint.size(), 1u);            // TENSORS_ZERO_DIM
  EXPECT_EQ(read_gguf(GgufBuilder().tensor("n", {43, 1, 1}, {32})).unknown_types.size(), 1u);  // TENSORS_BAD_TYPE
  EXPECT_EQ(read_gguf(GgufBuilder().tensor("n", {1023, 1, 1}, {32})).unknown_types.size(), 1u);
  EXPECT_EQ(read_gguf(GgufBuilder().alignment(1).tensor_at("z", kF32, {0}, 64).data(64)).checkpoint.size(), 1u);
  EXPECT_EQ(read_gguf(GgufBuilder().alignment(1 << 20).tensor("a", kF32, {1})).alignment, 1u << 20);
}

GgufBuilder nested_arrays(int inner) {
  const GgufBuilder b;
  std::string value;
  for (int i = 0; i < inner; ++i) value += b.number(std::uint32_t{test::kArray}) + b.number(std::uint64_t{1});
  value += b.number(std::uint32_t{test::kU8}) + b.number(std::uint64_t{1}) + "x";
  return GgufBuilder().array("k", test::kArray, 1, value).data(64);
}

TEST(HostileGgufAtItsLimits, Reads) {
  EXPECT_EQ(read_gguf(nested_arrays(7)).fields.size(), 1u);
  EXPECT_ERROR(read_gguf(nested_arrays(8)), Errc::limit, "arrays lie inside each other too deep");

  const GgufBuilder two = GgufBuilder().kv("a", 1u).kv("b", 1u).tensor("a", kF32, {1}).tensor("b", kF32, {1});
  gguf::ReadOptions options;
  options.limits.max_metadata_keys = options.limits.max_tensors = 2;
  EXPECT_EQ(read_gguf(two, options).checkpoint.size(), 2u);
  options.limits.max_tensors = 1;
  EXPECT_ERROR(read_gguf(two, options), Errc::limit, "2 tensors are more than the 1");
  options.limits = {};
  options.limits.max_metadata_keys = 1;
  EXPECT_ERROR(read_gguf(two, options), Errc::limit, "2 keys are more than the 1");

  options.limits = {};
  options.limits.max_header_bytes = two.header().size();
  EXPECT_EQ(read_gguf(two, options).checkpoint.size(), 2u);
  options.limits.max_header_bytes -= 1;
  EXPECT_ERROR(read_gguf(two, options), Errc::limit, "the header has more than the");
}

// The smallest tensor takes 24 bytes of a header, and the preamble takes 24 as well.
TEST(HostileGgufWithOneTooMany, IsRefusedByItsCount) {
  const std::string bytes = GgufBuilder().data(240).text();
  const std::uint64_t most = (bytes.size() - 24) / 24;
  EXPECT_ERROR(read_gguf(GgufBuilder().data(240).tensor_count(most + 1)), Errc::malformed,
               "the tensor count is " + std::to_string(most + 1));
  EXPECT_ERROR(read_gguf(GgufBuilder().data(240).tensor_count(most)), Errc::malformed, "tensor \"\"");
}

// A file that is cut anywhere is refused; if only padding is missing, it reads the same.
TEST(HostileGgufThatIsCut, IsRefusedAtEveryByte) {
  const std::string whole = GgufBuilder()
                                .kv("general.name", "x")
                                .strings("words", {"a", "b"})
                                .kv("n", 7u)
                                .tensor("a", kF32, {9})
                                .tensor("b", kQ4_0, {32})
                                .text();
  const std::size_t needed = whole.size() - (32 - 18);
  for (std::size_t size = 0; size < needed; ++size) {
    const auto error = BALLAST_ERROR_OF(gguf::read(test::source_of(std::string_view(whole).substr(0, size))));
    ASSERT_TRUE(test::is_error(error, Errc::malformed, "")) << size;
    ASSERT_TRUE(error->offset() && *error->offset() <= size) << size << ": " << error->what();
  }
  EXPECT_EQ(gguf::read(test::source_of(std::string_view(whole).substr(0, needed))).checkpoint.size(), 2u);
}

}  // namespace
}  // namespace ballast
