// S3Files: s3://bucket/key, on Amazon's servers or on those of AWS_ENDPOINT_URL. Requests are signed (SigV4) with the
// credentials of the environment or of ~/.aws; without any, they are sent unsigned, for public buckets.
#pragma once

#include <ballast/source.hpp>

#include <memory>
#include <string>
#include <vector>

#include "net/http_client.hpp"

namespace ballast::store {

struct S3Account {
  std::string key_id, secret, session_token;
  std::string region;    // "us-east-1" unless something says otherwise
  std::string endpoint;  // empty for Amazon's own
};

// From AWS_ACCESS_KEY_ID and the like, AWS_PROFILE, ~/.aws/credentials and ~/.aws/config.
S3Account account_of_user();

// The address and the signature for "s3://bucket/key". Throws Errc::invalid_argument.
net::Remote remote_of_s3(const std::string& target, const S3Account& account, const net::Access& base);

class S3Files final : public Files {
 public:
  explicit S3Files(std::shared_ptr<net::HttpClient> client);

  SourcePtr open(const std::string& name) const override;
  bool exists(const std::string& name) const override;
  std::optional<std::vector<std::string>> list(const std::string&) const override { return std::nullopt; }
  unsigned opens_at_once() const override { return 16; }

  net::Remote remote(const std::string& name) const;

 private:
  std::shared_ptr<net::HttpClient> client_;
};

}  // namespace ballast::store
