#include <gtest/gtest.h>

#include "stores/hub/address.hpp"
#include "stores/hub/listing.hpp"
#include "support/expect_error.hpp"

namespace ballast::hub {
namespace {

constexpr const char* kEndpoint = "https://hub.example:8443";

struct Spelling {
  const char *target, *repository, *revision, *path;
};

TEST(HubAddress, IsReadFromEverySpelling) {
  for (const auto& [target, repository, revision, path] : {
           Spelling{"hf://org/name", "org/name", "", ""},
           Spelling{"hf://org/name/", "org/name", "", ""},
           Spelling{"hf://models/org/name", "org/name", "", ""},
           Spelling{"hf://org/name@v1.0", "org/name", "v1.0", ""},
           Spelling{"hf://org/name/a/b.bin", "org/name", "", "a/b.bin"},
           Spelling{"hf://org/name@refs/pr/1/a", "org/name", "refs/pr/1", "a"},
           Spelling{"hf://org/name@refs/convert/parquet", "org/name", "refs/convert/parquet", ""},
           Spelling{"hf://org/name@refs%2Fpr%2F1/a", "org/name", "refs/pr/1", "a"},
           Spelling{"hf://org/name@feature%2Fx/a", "org/name", "feature/x", "a"},
           Spelling{"https://huggingface.co/org/name", "org/name", "", ""},
           Spelling{"https://hf.co/org/name/tree/main", "org/name", "main", ""},
           Spelling{"https://huggingface.co/org/name/blob/main/a%20b.bin", "org/name", "main", "a b.bin"},
           Spelling{"https://huggingface.co/org/name/resolve/main/a.bin?download=true", "org/name", "main", "a.bin"},
           Spelling{"https://hub.example:8443/org/name/raw/v1/a", "org/name", "v1", "a"},
       }) {
    const auto address = parse_address(target, kEndpoint);
    ASSERT_TRUE(address) << target;
    EXPECT_EQ(address->repository, repository) << target;
    EXPECT_EQ(address->revision, revision) << target;
    EXPECT_EQ(address->path, path) << target;
    const auto again = parse_address(address->text(), kEndpoint);
    EXPECT_EQ(again->repository + "@" + again->revision + "/" + again->path,
              address->repository + "@" + address->revision + "/" + address->path);
  }
}

TEST(HubAddress, IsNoneOfOtherServersAndPages) {
  for (const char* target : {"https://example.org/org/name", "https://huggingface.co.evil.example/org/name",
                             "https://huggingface.co/docs/hub", "https://huggingface.co/org",
                             "https://huggingface.co/api/models/org/name", "https://huggingface.co/org/name/x",
                             "http://huggingface.co/org/name", "model.safetensors", "s3://bucket/key"}) {
    EXPECT_FALSE(parse_address(target, kEndpoint)) << target;
  }
}

TEST(HubAddress, NeverLeadsOutOfItsRepository) {
  for (const char* target :
       {"hf://", "hf://org", "hf://org/", "hf:///name", "hf://org/..", "hf://../name", "hf://org/name/../x",
        "hf://org/name/a//b", "hf://org/name/a\\b", "hf://org/name@../x", "hf://org/name@", "hf://or g/name",
        "hf://org/-name", "hf://org/name.git", "hf://a--b/name", "https://hf.co/org/name/blob/main/%2e%2e/x",
        "https://hf.co/org/name/blob/main/..%2f..%2fx"}) {
    EXPECT_ERROR(parse_address(target, kEndpoint), Errc::invalid_argument, "");
  }
  EXPECT_ERROR(parse_address("hf://datasets/org/name", kEndpoint), Errc::unsupported, "datasets");
}

std::string page(const std::string& path, const std::string& more = "") {
  return R"([{"type":"file","path":")" + path + R"(","size":3,"oid":")" + std::string(40, 'a') + "\"" + more + "}]";
}

TEST(HubListing, HasTheFilesOfAPage) {
  Listing listing;
  add_page(listing, page("a/b.bin"));
  const std::string sha256(64, 'b');
  add_page(listing, page("c.bin", R"(,"lfs":{"oid":")" + sha256 + R"(","size":7,"pointerSize":1})"));
  add_page(listing, R"([{"type":"directory","path":"a","oid":"","size":0}])");
  ASSERT_EQ(listing.entries.size(), 2u);
  EXPECT_EQ(listing.entries[0].digest(), std::string(40, 'a'));
  EXPECT_EQ(listing.entries[1].digest(), sha256);
  EXPECT_EQ(listing.entries[1].size, 7u);
  EXPECT_EQ(listing.find("c.bin")->size, 7u);
  EXPECT_EQ(listing.find("nothing"), nullptr);
}

TEST(HubListing, LeavesOutNamesThatLeadElsewhere) {
  Listing listing;
  for (const char* path : {"../x", "/etc/x", "a/../x", "a\\\\b", "a\\u0000b", "", "a/", "./a", "a\\u001bb"})
    add_page(listing, page(path));
  EXPECT_TRUE(listing.entries.empty());
  EXPECT_EQ(listing.odd_names.size(), 9u);
}

TEST(HubListing, RefusesWhatIsNoListing) {
  Listing listing;
  for (const char* body :
       {"", "{}", "null", "[1]", "[{\"type\":\"file\"}]", R"([{"type":"file","path":"a","size":-1,"oid":"x"}])",
        R"([{"type":"file","path":"a","size":1,"oid":"../../x"}])",
        R"([{"type":"file","path":"a","size":1e99,"oid":"x"}])",
        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"oid\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
        "\"lfs\":{\"oid\":\"../x\",\"size\":1}}]"}) {
    EXPECT_ERROR(add_page(listing, body), Errc::malformed, "");
  }
}

TEST(HubListing, FindsTheNextPage) {
  const auto next = [](const char* link) {
    net::Headers headers;
    headers.add_line("HTTP/1.1 200 OK");
    headers.add_line(std::string("Link: ") + link);
    return next_page(headers);
  };
  EXPECT_EQ(next(R"(<https://a/1>; rel="next")"), "https://a/1");
  EXPECT_EQ(next(R"(<https://a/0>; rel="prev", <https://a/1>; rel="next")"), "https://a/1");
  EXPECT_EQ(next(R"(<https://a/0>; rel="prev")"), "");
  for (const char* wrong : {"", "<", ">", "><", "<<<", "<a>", "rel=\"next\"", "rel=\"next\" <a"})
    EXPECT_EQ(next(wrong), "") << wrong;
}

}  // namespace
}  // namespace ballast::hub
