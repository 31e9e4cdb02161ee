#include <ballast/typed_metadata.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

TEST(TypedMetadata, KeepTheirOrderThroughEveryChange) {
  TypedMetadata fields;
  fields.set(MetadataEntry::of("a", std::uint32_t{1}));
  fields.set(MetadataEntry::of("b", "two"));
  fields.set(MetadataEntry::of("c", 3.0));
  fields.set(MetadataEntry::of("b", true));
  EXPECT_TRUE(fields.remove("a"));
  EXPECT_FALSE(fields.remove("a"));
  fields.set(MetadataEntry::of("a", std::int8_t{-1}));
  std::string keys;
  for (const MetadataEntry& field : fields) keys += std::string(field.key) + ":" + std::string(name(field.type)) + " ";
  EXPECT_EQ(keys, "b:bool c:f64 a:i8 ");
  for (const MetadataEntry& field : fields) EXPECT_EQ(fields.find(field.key), &field);
  EXPECT_EQ(fields.find("d"), nullptr);
  EXPECT_EQ(TypedMetadata().find("a"), nullptr);
}

TEST(TypedMetadata, ShareTheirValuesWithCopies) {
  TypedMetadata fields;
  const std::string words[] = {"a", "b"};
  fields.set(MetadataEntry::strings("words", words));
  TypedMetadata copy = fields;
  EXPECT_EQ(copy, fields);
  EXPECT_EQ(copy.find("words")->bytes.data(), fields.find("words")->bytes.data());
  copy.set(MetadataEntry::of("words", "none"));
  EXPECT_NE(copy, fields);
  EXPECT_EQ(fields.find("words")->count, 2u);
}

TEST(TypedMetadata, AdoptManyAndFindTheFirstRepeatedKey) {
  std::vector<MetadataEntry> many;
  for (int i = 0; i < 1000; ++i) many.push_back(MetadataEntry::of("k" + std::to_string(i), i));
  TypedMetadata fields;
  EXPECT_FALSE(Doors::adopt(fields, many));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(fields.find("k" + std::to_string(i))->as_int(), i);
  many.push_back(MetadataEntry::of("k7", 1));
  many.push_back(MetadataEntry::of("k3", 1));
  TypedMetadata twice;
  EXPECT_EQ(Doors::adopt(twice, many), 1000u);
}

TEST(TypedMetadata, GiveNumbersOnlyAsTypesThatHoldThem) {
  EXPECT_EQ(MetadataEntry::of("k", std::int16_t{5}).as_uint(), 5u);
  EXPECT_EQ(MetadataEntry::of("k", std::int16_t{-5}).as_uint(), std::nullopt);
  EXPECT_EQ(MetadataEntry::of("k", std::numeric_limits<std::uint64_t>::max()).as_int(), std::nullopt);
  EXPECT_EQ(MetadataEntry::of("k", std::uint8_t{200}).as_int(), 200);
  EXPECT_EQ(MetadataEntry::of("k", std::int32_t{-1}).as_double(), -1.0);
  EXPECT_EQ(MetadataEntry::of("k", 1.5f).as_double(), 1.5);
  EXPECT_EQ(MetadataEntry::of("k", 1.5f).as_uint(), std::nullopt);
  EXPECT_EQ(MetadataEntry::of("k", true).as_uint(), std::nullopt);
  EXPECT_EQ(MetadataEntry::of("k", true).as_bool(), true);
  EXPECT_EQ(MetadataEntry::of("k", "text").as_string(), "text");
  EXPECT_EQ(MetadataEntry::of("k", "text").as_double(), std::nullopt);
  const std::int32_t numbers[] = {1};
  EXPECT_EQ(MetadataEntry::numbers<std::int32_t>("k", numbers).as_uint(), std::nullopt);
  EXPECT_EQ(MetadataEntry::numbers<std::int32_t>("k", numbers).as_string(), std::nullopt);
}

TEST(TypedMetadata, RefuseBytesThatAreNotSuchAValue) {
  const std::vector<std::byte> bytes(12);
  EXPECT_ERROR(MetadataEntry::of("", 1), Errc::invalid_argument, "must have a key");
  EXPECT_ERROR(MetadataEntry::from_bytes("k", MetadataType::u32, bytes), Errc::invalid_argument,
               "12 bytes for field \"k\" are not one u32");
  EXPECT_ERROR(MetadataEntry::from_bytes("k", MetadataType::array, bytes), Errc::invalid_argument, "one array");
  EXPECT_ERROR(MetadataEntry::array_from_bytes("k", MetadataType::u64, 2, bytes), Errc::invalid_argument,
               "2 elements of type u64");
  EXPECT_ERROR(MetadataEntry::array_from_bytes("k", MetadataType::string, 1, bytes), Errc::invalid_argument,
               "1 elements of type string");
  EXPECT_ERROR(MetadataEntry::array_from_bytes("k", MetadataType::array, 1, bytes), Errc::invalid_argument, "array");
  EXPECT_EQ(MetadataEntry::array_from_bytes("k", MetadataType::string, 1, std::span(bytes).first(8)).count, 1u);
}

TEST(MetadataItems, EndWhereTheirBytesEnd) {
  std::vector<std::byte> bytes(20, std::byte{0xFF});
  EXPECT_TRUE(MetadataItems(MetadataType::string, bytes).begin() == std::default_sentinel);
  EXPECT_TRUE(MetadataItems(MetadataType::string, std::span(bytes).first(3)).begin() == std::default_sentinel);
  std::size_t count = 0;
  for (const MetadataValue item : MetadataItems(MetadataType::u64, bytes)) count += item.bytes.size() / 8;
  EXPECT_EQ(count, 2u);
}

TEST(FieldText, IsShort) {
  EXPECT_EQ(text(MetadataEntry::of("k", 0.1f)), "0.1");
  EXPECT_EQ(text(MetadataEntry::of("k", -1e300)), "-1e+300");
  EXPECT_EQ(text(MetadataEntry::of("k", std::int8_t{-7})), "-7");
  EXPECT_EQ(text(MetadataEntry::of("k", false)), "false");
  EXPECT_EQ(text(MetadataEntry::of("k", "as \"it\" is")), "as \"it\" is");
  const std::int32_t numbers[] = {1, 2, 3, 4};
  EXPECT_EQ(text(MetadataEntry::numbers<std::int32_t>("k", numbers)), "[1, 2, 3, 4]");
  EXPECT_EQ(text(MetadataEntry::numbers<std::int32_t>("k", numbers), 2), "[1, 2, ... 2 more]");
  EXPECT_EQ(text(MetadataEntry::numbers<std::int32_t>("k", numbers), 4), "[1, 2, 3, 4]");
  EXPECT_EQ(text(MetadataEntry::numbers<std::int32_t>("k", {})), "[]");
  const std::string words[] = {"a\n", "\"", "\xFF!"};
  EXPECT_EQ(text(MetadataEntry::strings("k", words)), "[\"a\\n\", \"\\\"\", \"\xEF\xBF\xBD!\"]");
}

struct Guess {
  const char* text;
  MetadataType type;
};

TEST(FieldsFromText, GuessTheTypeOfANewKey) {
  const Guess guesses[] = {
      {"7", MetadataType::u32},           {"-7", MetadataType::i32},
      {"4294967295", MetadataType::u32},  {"4294967296", MetadataType::u64},
      {"-2147483649", MetadataType::i64}, {"0.5", MetadataType::f32},
      {"1e-5", MetadataType::f32},        {"1e300", MetadataType::f64},
      {"true", MetadataType::boolean},    {"false", MetadataType::boolean},
      {"True", MetadataType::string},     {"llama", MetadataType::string},
      {"", MetadataType::string},         {"nan", MetadataType::string},
      {"inf", MetadataType::string},      {"e", MetadataType::string},
      {"1.2.3", MetadataType::string},    {"18446744073709551616", MetadataType::f32},
      {"7 ", MetadataType::string},       {"0x10", MetadataType::string},
  };
  for (const Guess& guess : guesses) {
    TypedMetadata fields;
    fields.set_from_text("k", guess.text);
    EXPECT_EQ(fields.find("k")->type, guess.type) << guess.text;
  }
}

TEST(FieldsFromText, KeepTheTypeOfAKeyUnlessAnotherIsNamed) {
  TypedMetadata fields;
  fields.set(MetadataEntry::of("n", std::uint16_t{1}));
  fields.set(MetadataEntry::of("s", "x"));
  fields.set_from_text("n", "65535");
  fields.set_from_text("s", "5");
  EXPECT_EQ(fields.find("n")->type, MetadataType::u16);
  EXPECT_EQ(fields.find_string("s"), "5");
  EXPECT_ERROR(fields.set_from_text("n", "65536"), Errc::invalid_argument, "\"65536\" is no u16, which field \"n\" is");
  fields.set_from_text("n", "65536", MetadataType::u32);
  EXPECT_EQ(fields.find_uint("n"), 65536u);
  fields.set_from_text("n", "nan", MetadataType::f32);
  EXPECT_TRUE(std::isnan(*fields.find("n")->as_double()));
  EXPECT_ERROR(fields.set_from_text("n", "yes", MetadataType::boolean), Errc::invalid_argument, "is no bool");
  const std::int32_t numbers[] = {1};
  fields.set(MetadataEntry::numbers<std::int32_t>("a", numbers));
  EXPECT_ERROR(fields.set_from_text("a", "2"), Errc::invalid_argument, "is an array");
}

TEST(FieldAssignments, AreAKeyMaybeATypeAndAText) {
  const MetadataAssignment plain = parse_metadata_assignment("general.name=a=b");
  EXPECT_EQ(plain.key, "general.name");
  EXPECT_EQ(plain.text, "a=b");
  EXPECT_FALSE(plain.type);
  const MetadataAssignment typed = parse_metadata_assignment("llama.block_count:u64=2");
  EXPECT_EQ(typed.key, "llama.block_count");
  EXPECT_EQ(typed.type, MetadataType::u64);
  EXPECT_EQ(parse_metadata_assignment("a:b:u8=1").key, "a:b");
  EXPECT_EQ(parse_metadata_assignment("a:u23=2").key, "a:u23");  // a word that is not a type belongs to the key
  EXPECT_EQ(parse_metadata_assignment("a:u23=2").type, std::nullopt);
  for (const char* bad : {"", "=", "=x", "key"})
    EXPECT_ERROR(parse_metadata_assignment(bad), Errc::invalid_argument, "KEY=VALUE");
}

}  // namespace
}  // namespace ballast
