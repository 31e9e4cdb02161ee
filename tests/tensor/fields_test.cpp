#include <ballast/fields.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

TEST(Fields, KeepTheirOrderThroughEveryChange) {
  Fields fields;
  fields.set(Field::of("a", std::uint32_t{1}));
  fields.set(Field::of("b", "two"));
  fields.set(Field::of("c", 3.0));
  fields.set(Field::of("b", true));
  EXPECT_TRUE(fields.remove("a"));
  EXPECT_FALSE(fields.remove("a"));
  fields.set(Field::of("a", std::int8_t{-1}));
  std::string keys;
  for (const Field& field : fields) keys += std::string(field.key) + ":" + std::string(name(field.type)) + " ";
  EXPECT_EQ(keys, "b:bool c:f64 a:i8 ");
  for (const Field& field : fields) EXPECT_EQ(fields.find(field.key), &field);
  EXPECT_EQ(fields.find("d"), nullptr);
  EXPECT_EQ(Fields().find("a"), nullptr);
}

TEST(Fields, ShareTheirValuesWithCopies) {
  Fields fields;
  const std::string words[] = {"a", "b"};
  fields.set(Field::strings("words", words));
  Fields copy = fields;
  EXPECT_EQ(copy, fields);
  EXPECT_EQ(copy.find("words")->bytes.data(), fields.find("words")->bytes.data());
  copy.set(Field::of("words", "none"));
  EXPECT_NE(copy, fields);
  EXPECT_EQ(fields.find("words")->count, 2u);
}

TEST(Fields, AdoptManyAndFindTheFirstRepeatedKey) {
  std::vector<Field> many;
  for (int i = 0; i < 1000; ++i) many.push_back(Field::of("k" + std::to_string(i), i));
  Fields fields;
  EXPECT_FALSE(fields.adopt(many));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(fields.find("k" + std::to_string(i))->as_int(), i);
  many.push_back(Field::of("k7", 1));
  many.push_back(Field::of("k3", 1));
  EXPECT_EQ(Fields().adopt(many), 1000u);
}

TEST(Fields, GiveNumbersOnlyAsTypesThatHoldThem) {
  EXPECT_EQ(Field::of("k", std::int16_t{5}).as_uint(), 5u);
  EXPECT_EQ(Field::of("k", std::int16_t{-5}).as_uint(), std::nullopt);
  EXPECT_EQ(Field::of("k", std::numeric_limits<std::uint64_t>::max()).as_int(), std::nullopt);
  EXPECT_EQ(Field::of("k", std::uint8_t{200}).as_int(), 200);
  EXPECT_EQ(Field::of("k", std::int32_t{-1}).as_double(), -1.0);
  EXPECT_EQ(Field::of("k", 1.5f).as_double(), 1.5);
  EXPECT_EQ(Field::of("k", 1.5f).as_uint(), std::nullopt);
  EXPECT_EQ(Field::of("k", true).as_uint(), std::nullopt);
  EXPECT_EQ(Field::of("k", true).as_bool(), true);
  EXPECT_EQ(Field::of("k", "text").as_string(), "text");
  EXPECT_EQ(Field::of("k", "text").as_double(), std::nullopt);
  const std::int32_t numbers[] = {1};
  EXPECT_EQ(Field::numbers<std::int32_t>("k", numbers).as_uint(), std::nullopt);
  EXPECT_EQ(Field::numbers<std::int32_t>("k", numbers).as_string(), std::nullopt);
}

TEST(Fields, RefuseBytesThatAreNotSuchAValue) {
  const std::vector<std::byte> bytes(12);
  EXPECT_ERROR(Field::of("", 1), Errc::invalid_argument, "must have a key");
  EXPECT_ERROR(Field::from_bytes("k", FieldType::u32, bytes), Errc::invalid_argument,
               "12 bytes for field \"k\" are not one u32");
  EXPECT_ERROR(Field::from_bytes("k", FieldType::array, bytes), Errc::invalid_argument, "one array");
  EXPECT_ERROR(Field::array_from_bytes("k", FieldType::u64, 2, bytes), Errc::invalid_argument,
               "2 elements of type u64");
  EXPECT_ERROR(Field::array_from_bytes("k", FieldType::string, 1, bytes), Errc::invalid_argument,
               "1 elements of type string");
  EXPECT_ERROR(Field::array_from_bytes("k", FieldType::array, 1, bytes), Errc::invalid_argument, "array");
  EXPECT_EQ(Field::array_from_bytes("k", FieldType::string, 1, std::span(bytes).first(8)).count, 1u);
}

TEST(FieldItems, EndWhereTheirBytesEnd) {
  std::vector<std::byte> bytes(20, std::byte{0xFF});
  EXPECT_TRUE(FieldItems(FieldType::string, bytes).begin() == std::default_sentinel);
  EXPECT_TRUE(FieldItems(FieldType::string, std::span(bytes).first(3)).begin() == std::default_sentinel);
  std::size_t count = 0;
  for (const FieldValue item : FieldItems(FieldType::u64, bytes)) count += item.bytes.size() / 8;
  EXPECT_EQ(count, 2u);
}

TEST(FieldText, IsShort) {
  EXPECT_EQ(text(Field::of("k", 0.1f)), "0.1");
  EXPECT_EQ(text(Field::of("k", -1e300)), "-1e+300");
  EXPECT_EQ(text(Field::of("k", std::int8_t{-7})), "-7");
  EXPECT_EQ(text(Field::of("k", false)), "false");
  EXPECT_EQ(text(Field::of("k", "as \"it\" is")), "as \"it\" is");
  const std::int32_t numbers[] = {1, 2, 3, 4};
  EXPECT_EQ(text(Field::numbers<std::int32_t>("k", numbers)), "[1, 2, 3, 4]");
  EXPECT_EQ(text(Field::numbers<std::int32_t>("k", numbers), 2), "[1, 2, ... 2 more]");
  EXPECT_EQ(text(Field::numbers<std::int32_t>("k", numbers), 4), "[1, 2, 3, 4]");
  EXPECT_EQ(text(Field::numbers<std::int32_t>("k", {})), "[]");
  const std::string words[] = {"a\n", "\"", "\xFF!"};
  EXPECT_EQ(text(Field::strings("k", words)), "[\"a\\n\", \"\\\"\", \"\xEF\xBF\xBD!\"]");
}

struct Guess {
  const char* text;
  FieldType type;
};

TEST(FieldsFromText, GuessTheTypeOfANewKey) {
  const Guess guesses[] = {
      {"7", FieldType::u32},          {"-7", FieldType::i32},          {"4294967295", FieldType::u32},
      {"4294967296", FieldType::u64}, {"-2147483649", FieldType::i64}, {"0.5", FieldType::f32},
      {"1e-5", FieldType::f32},       {"1e300", FieldType::f64},       {"true", FieldType::boolean},
      {"false", FieldType::boolean},  {"True", FieldType::string},     {"llama", FieldType::string},
      {"", FieldType::string},        {"nan", FieldType::string},      {"inf", FieldType::string},
      {"e", FieldType::string},       {"1.2.3", FieldType::string},    {"18446744073709551616", FieldType::f32},
      {"7 ", FieldType::string},      {"0x10", FieldType::string},
  };
  for (const Guess& guess : guesses) {
    Fields fields;
    fields.set_from_text("k", guess.text);
    EXPECT_EQ(fields.find("k")->type, guess.type) << guess.text;
  }
}

TEST(FieldsFromText, KeepTheTypeOfAKeyUnlessAnotherIsNamed) {
  Fields fields;
  fields.set(Field::of("n", std::uint16_t{1}));
  fields.set(Field::of("s", "x"));
  fields.set_from_text("n", "65535");
  fields.set_from_text("s", "5");
  EXPECT_EQ(fields.find("n")->type, FieldType::u16);
  EXPECT_EQ(fields.find_string("s"), "5");
  EXPECT_ERROR(fields.set_from_text("n", "65536"), Errc::invalid_argument, "\"65536\" is no u16, which field \"n\" is");
  fields.set_from_text("n", "65536", FieldType::u32);
  EXPECT_EQ(fields.find_uint("n"), 65536u);
  fields.set_from_text("n", "nan", FieldType::f32);
  EXPECT_TRUE(std::isnan(*fields.find("n")->as_double()));
  EXPECT_ERROR(fields.set_from_text("n", "yes", FieldType::boolean), Errc::invalid_argument, "is no bool");
  const std::int32_t numbers[] = {1};
  fields.set(Field::numbers<std::int32_t>("a", numbers));
  EXPECT_ERROR(fields.set_from_text("a", "2"), Errc::invalid_argument, "is an array");
}

TEST(FieldAssignments, AreAKeyMaybeATypeAndAText) {
  const FieldAssignment plain = parse_field_assignment("general.name=a=b");
  EXPECT_EQ(plain.key, "general.name");
  EXPECT_EQ(plain.text, "a=b");
  EXPECT_FALSE(plain.type);
  const FieldAssignment typed = parse_field_assignment("llama.block_count:u64=2");
  EXPECT_EQ(typed.key, "llama.block_count");
  EXPECT_EQ(typed.type, FieldType::u64);
  EXPECT_EQ(parse_field_assignment("a:b:u8=1").key, "a:b");
  EXPECT_ERROR(parse_field_assignment("llama.block_count:u23=2"), Errc::invalid_argument, "there is no type \"u23\"");
  for (const char* bad : {"", "=", "=x", "key"})
    EXPECT_ERROR(parse_field_assignment(bad), Errc::invalid_argument, "KEY=VALUE");
}

}  // namespace
}  // namespace ballast
