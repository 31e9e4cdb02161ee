#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/base64.hpp"

namespace ballast {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// RFC 4648, section 10.
constexpr std::pair<std::string_view, std::string_view> kVectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xFB\xFF\xBF", "+/+/"},
};

TEST(Base64, FollowsTheSpecification) {
  for (const auto& [plain, text] : kVectors) {
    EXPECT_EQ(to_base64(bytes_of(plain)), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(back->data()), back->size()), plain);
  }
}

TEST(Base64, GivesEveryByteBackAtEveryPosition) {
  for (std::size_t size = 0; size < 300; ++size) {
    std::string plain;
    for (std::size_t i = 0; i < size; ++i) plain += static_cast<char>(i * 37 + size);
    const auto back = from_base64(to_base64(bytes_of(plain)));
    ASSERT_TRUE(back);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(back->data()), back->size()), plain);
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "=", "====", "Z===", "Zg==Zg==", "Zm9v\n", " Zm9", "Zm9-", "Zm9_", "Zm\xFFv", "Zm=v", "Z=9v"})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace ballast
