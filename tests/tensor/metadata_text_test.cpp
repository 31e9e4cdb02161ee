// Metadata from what somebody typed.
#include <gtest/gtest.h>

#include <ballast/metadata_text.hpp>

#include <string>

#include "support/expect_error.hpp"

namespace ballast {
namespace {

// The type of the elements and the value, after assignments in order.
std::string after(std::initializer_list<std::string_view> assignments) {
  TypedMetadata fields;
  for (const std::string_view assignment : assignments) assign(fields, assignment);
  const MetadataEntry& field = fields[0];
  return std::string(field.key) + " " + std::string(name(field.is_array() ? field.element_type : field.type)) + " " +
         text(field);
}

TEST(MetadataText, SetsArraysOfANamedType) {
  EXPECT_EQ(after({"k:[str]=a,b, c"}), "k string [\"a\", \"b\", \" c\"]");
  EXPECT_EQ(after({"k:[string]=[\"a,b\", \"c\"]"}), "k string [\"a,b\", \"c\"]");
  EXPECT_EQ(after({"k:[u8]=1, 2,255"}), "k u8 [1, 2, 255]");
  EXPECT_EQ(after({"k:[f32]=[1, 2.5]"}), "k f32 [1, 2.5]");
  EXPECT_EQ(after({"k:[bool]=true, false"}), "k bool [true, false]");
  EXPECT_EQ(after({"k:[i64]="}), "k i64 []");
  EXPECT_EQ(after({"k:[i64]=[]"}), "k i64 []");
}

TEST(MetadataText, GuessesTheTypeOfAJsonArray) {
  EXPECT_EQ(after({"k=[\"a\"]"}), "k string [\"a\"]");
  EXPECT_EQ(after({"k=[1, 2]"}), "k u32 [1, 2]");
  EXPECT_EQ(after({"k=[1, -2]"}), "k i32 [1, -2]");
  EXPECT_EQ(after({"k=[1, 4294967296]"}), "k u64 [1, 4294967296]");
  EXPECT_EQ(after({"k=[1, 0.5]"}), "k f32 [1, 0.5]");
  EXPECT_EQ(after({"k=[true]"}), "k bool [true]");
  EXPECT_EQ(after({"k:[i8]=1", "k=[2, 3]"}), "k i8 [2, 3]");
  EXPECT_EQ(after({"k:[i8]=1", "k:array=[200]"}), "k u32 [200]");
  EXPECT_EQ(after({"k=text", "k=[1]"}), "k string [1]");  // it keeps its type
  EXPECT_EQ(after({"k=[not json"}), "k string [not json");
}

TEST(MetadataText, SetsOneValueAsBefore) {
  EXPECT_EQ(after({"k=1"}), "k u32 1");
  EXPECT_EQ(after({"k:str=1"}), "k string 1");
  EXPECT_EQ(after({"k:string=[1]"}), "k string [1]");
  EXPECT_EQ(after({"k:other=1"}), "k:other u32 1");
  EXPECT_EQ(after({"k=a=b"}), "k string a=b");
}

TEST(MetadataText, RefusesWhatCannotBe) {
  const auto refuse = [](std::string_view assignment) {
    TypedMetadata fields;
    assign(fields, "old:[u8]=1");
    assign(fields, assignment);
  };
  EXPECT_ERROR(refuse("k:[u8]=256"), Errc::invalid_argument, "field \"k\": \"256\" is no array of u8");
  EXPECT_ERROR(refuse("k:[u8]=1,,2"), Errc::invalid_argument, "is no array of u8");
  EXPECT_ERROR(refuse("k:[string]=[1]"), Errc::invalid_argument, "is no array of string");
  EXPECT_ERROR(refuse("k:[bool]=yes"), Errc::invalid_argument, "is no array of bool");
  EXPECT_ERROR(refuse("k:[foo]=1"), Errc::invalid_argument, "there is no type \"foo\"");
  EXPECT_ERROR(refuse("k:[array]=1"), Errc::invalid_argument, "there is no type \"array\"");
  EXPECT_ERROR(refuse("k=[1, \"a\"]"), Errc::invalid_argument, "all of one type");
  EXPECT_ERROR(refuse("k=[[1]]"), Errc::invalid_argument, "and nothing else");
  EXPECT_ERROR(refuse("k=[null]"), Errc::invalid_argument, "and nothing else");
  EXPECT_ERROR(refuse("k=[]"), Errc::invalid_argument, "an empty array");
  EXPECT_ERROR(refuse("old=1"), Errc::invalid_argument, "it is an array, and \"1\" is no JSON array");
  EXPECT_ERROR(refuse("old=[300]"), Errc::invalid_argument, "is no array of u8");
  EXPECT_ERROR(refuse("=1"), Errc::invalid_argument, "is no KEY=VALUE");
  EXPECT_ERROR(refuse("k"), Errc::invalid_argument, "is no KEY=VALUE");
  EXPECT_ERROR(refuse("k=" + std::string(100'000, '[')), Errc::limit, "");
}

TEST(MetadataText, KnowsFilesThatHaveTextsOnly) {
  EXPECT_EQ(parse_text_assignment("k:string=1").key, "k");
  EXPECT_EQ(parse_text_assignment("k=[\"a\"]").text, "[\"a\"]");
  EXPECT_ERROR(parse_text_assignment("k:u32=1"), Errc::invalid_argument, "\"k\" cannot be u32");
  EXPECT_ERROR(parse_text_assignment("k:[u32]=1"), Errc::invalid_argument, "\"k\" cannot be an array of u32");
}

}  // namespace
}  // namespace ballast
