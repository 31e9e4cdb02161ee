#include "net/addresses.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace ballast::net {
namespace {

TEST(Addresses, TellFromWhereTheyCanBeReached) {
  for (const char* address :
       {"127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "0.0.0.0",
        "::1", "::", "fd00::1", "fc00::1", "::ffff:10.0.0.1", "no address"}) {
    EXPECT_EQ(reach_of(std::string(address)), Reach::private_network) << address;
  }
  for (const char* address : {"169.254.169.254", "fe80::1", "::ffff:169.254.169.254"})
    EXPECT_EQ(reach_of(std::string(address)), Reach::link_local) << address;
  for (const char* address : {"1.1.1.1", "172.15.255.255", "172.32.0.0", "192.169.0.0", "100.63.255.255", "100.128.0.0",
                              "169.253.255.255", "2001:db8::1", "::ffff:8.8.8.8"}) {
    EXPECT_EQ(reach_of(std::string(address)), Reach::everywhere) << address;
  }
}

TEST(Addresses, OfRedirectsMayBeRelative) {
  EXPECT_EQ(resolve("https://a.example/x/y?q=1", "../z").whole, "https://a.example/z");
  EXPECT_EQ(resolve("https://a.example/x", "//b.example/y").whole, "https://b.example/y");
  EXPECT_EQ(resolve("https://a.example/x", "?signed=1").whole, "https://a.example/x?signed=1");
  EXPECT_EQ(resolve("https://a.example/x", "http://b.example/").scheme, "http");
}

TEST(Addresses, WithAPasswordAreRefusedAndNotShown) {
  EXPECT_ERROR(resolve("", "https://me:secret@a.example/x"), Errc::invalid_argument, "https://a.example/x");
  EXPECT_ERROR(resolve("", "https://[::bad/"), Errc::invalid_argument, "no address");
  EXPECT_EQ(without_secrets("https://me:secret@a.example/x?token=1#f"), "https://a.example/x");
  EXPECT_EQ(without_secrets("https://a.example/x@main/y?token=1"), "https://a.example/x@main/y");
}

TEST(Addresses, OfThisMachineMayBePlain) {
  for (const char* url : {"http://localhost:80/", "http://127.0.0.1/", "http://[::1]:8080/x", "http://a.localhost/"})
    EXPECT_TRUE(is_loopback(resolve("", url))) << url;
  for (const char* url : {"http://localhost.example/", "http://127.0.0.1.example/", "http://example.org/"})
    EXPECT_FALSE(is_loopback(resolve("", url))) << url;
}

}  // namespace
}  // namespace ballast::net
