#include "net/http_answer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"

namespace ballast::net {
namespace {

Headers headers_of(const std::vector<std::string>& lines) {
  Headers headers;
  for (const std::string& line : lines) headers.add_line(line + "\r\n");
  return headers;
}

Headers partial(const std::string& range, const std::vector<std::string>& more = {}) {
  std::vector<std::string> lines = {"HTTP/1.1 206 Partial Content", "Content-Range: " + range};
  lines.insert(lines.end(), more.begin(), more.end());
  return headers_of(lines);
}

TEST(HttpHeaders, AreFoundByNamesInAnyCase) {
  const Headers headers = headers_of({"HTTP/2 206", "eTaG:  \"abc\" ", "Content-Length: 5"});
  EXPECT_EQ(headers.status, 206);
  EXPECT_EQ(headers.get("etag"), "\"abc\"");
  EXPECT_EQ(headers.get("content-length"), "5");
  EXPECT_EQ(headers.get("location"), "");
}

TEST(HttpHeaders, BeginAnewWithAStatusLine) {
  const Headers headers = headers_of({"HTTP/1.1 100 Continue", "ETag: \"old\"", "HTTP/1.1 200 OK"});
  EXPECT_EQ(headers.status, 200);
  EXPECT_EQ(headers.get("etag"), "");
}

TEST(HttpHeaders, TakeLinesThatMakeNoSense) {
  const Headers headers = headers_of({"HTTP/1.1", "no colon", ":", "HTTP/1.1 2x6 What", ""});
  EXPECT_EQ(headers.status, 0);
}

TEST(ContentRange, IsReadAsTheSpecificationSpellsIt) {
  const auto range = parse_content_range("bytes 0-65535/1048576");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 0u);
  EXPECT_EQ(range->last, 65535u);
  EXPECT_EQ(range->total, 1048576u);
  EXPECT_FALSE(parse_content_range("bytes 0-5/*")->total);
}

TEST(ContentRange, IsRefusedInEveryOtherForm) {
  for (const char* text : {"", "bytes", "bytes 0-5", "bytes 5-0/10", "bytes 0-5/5", "bytes -5/10", "bytes 0-/10",
                           "bytes 0-5/x", "items 0-5/10", "bytes 0-5/10 ", "bytes +0-5/10", "bytes 0-5/-1",
                           "bytes 0-18446744073709551615/18446744073709551615", "bytes 0-18446744073709551616/1",
                           "bytes 0-99999999999999999999999/1", "bytes /0-5"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

TEST(PartialAnswer, BringsWhatWasAskedFor) {
  const Brought brought = check_partial(partial("bytes 10-19/100", {"Content-Length: 10"}), {10, 10, false});
  EXPECT_EQ(brought.range, (ByteRange{10, 10}));
  EXPECT_EQ(brought.total, 100u);
}

TEST(PartialAnswer, MayBeCutByTheEndOfTheFile) {
  EXPECT_EQ(check_partial(partial("bytes 90-99/100"), {90, 64, false}).range.size, 10u);
  EXPECT_EQ(check_partial(partial("bytes 0-99/100"), {0, 65557, true}).range.size, 100u);
}

TEST(PartialAnswer, IsRefusedIfItDoesNotFitTheQuestion) {
  const struct {
    Headers headers;
    WantedRange wanted;
    const char* why;
  } rows[] = {
      {partial("bytes 11-20/100"), {10, 10, false}, "bytes 11-20"},
      {partial("bytes 10-20/100"), {10, 10, false}, "bytes 10-20"},
      {partial("bytes 10-15/100"), {10, 10, false}, "bytes 10-15"},
      {partial("bytes 0-9/100"), {0, 10, true}, "not the end"},
      {partial("bytes 95-99/100"), {0, 10, true}, "not the end"},
      {partial("nonsense"), {0, 10, false}, "Content-Range"},
      {headers_of({"HTTP/1.1 206 Partial Content"}), {0, 10, false}, "Content-Range"},
      {partial("bytes 0-9/100", {"Content-Encoding: gzip"}), {0, 10, false}, "compressed"},
      {partial("bytes 0-9/100", {"Content-Type: multipart/byteranges; boundary=x"}), {0, 10, false}, "several parts"},
      {partial("bytes 0-9/100", {"Content-Length: 11"}), {0, 10, false}, "length"},
      {partial("bytes 0-9/100", {"Content-Length: -1"}), {0, 10, false}, "length"},
      {partial("bytes 0-9/100", {"Content-Length: 10", "Content-Length: 9"}), {0, 10, false}, "two different"},
      {partial("bytes 0-9/100", {"Content-Range: bytes 0-9/200"}), {0, 10, false}, "two different"},
  };
  for (const auto& row : rows) EXPECT_ERROR(check_partial(row.headers, row.wanted), Errc::io, row.why);
}

TEST(HttpEtag, CountsOnlyIfItIsStrong) {
  EXPECT_EQ(strong_etag(headers_of({"ETag: \"abc\""})), "\"abc\"");
  for (const char* text : {"W/\"abc\"", "abc", "\"", "\"\"", ""})
    EXPECT_EQ(strong_etag(headers_of({std::string("ETag: ") + text})), "") << text;
}

TEST(HttpPatience, WaitsAsLongAsTheServerAsksButNotForEver) {
  EXPECT_EQ(milliseconds_to_wait(headers_of({"Retry-After: 3"}), 0, 0), 3000u);
  EXPECT_EQ(milliseconds_to_wait(headers_of({"Retry-After: 99999999999999"}), 0, 0), 60'000u);
  EXPECT_EQ(milliseconds_to_wait(headers_of({"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}), 0, 1), 500u);
  EXPECT_EQ(milliseconds_to_wait({}, 3, 1), 4000u);
  EXPECT_EQ(milliseconds_to_wait({}, 100, 1), 8000u);
  EXPECT_EQ(milliseconds_to_wait({}, 100, 0), 4000u);
}

}  // namespace
}  // namespace ballast::net
