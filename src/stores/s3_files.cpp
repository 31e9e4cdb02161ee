#include "stores/s3_files.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "net/http_source.hpp"
#include "stores/http_files.hpp"
#include "stores/hub/address.hpp"

namespace ballast::store {
namespace {

constexpr std::string_view kScheme = "s3://";
// Of no bytes at all, which is what a GET sends.
constexpr std::string_view kSha256OfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_of(std::string a, std::string b) { return a.empty() ? b : a; }

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// One section of an INI file: "[name]", then "key = value".
std::map<std::string, std::string> section_of(const std::string& path, std::string_view section) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = trimmed(line);
    if (text.starts_with('[')) is_inside = trimmed(text.substr(1, text.find(']') - 1)) == section;
    const std::size_t equals = text.find('=');
    const bool is_value = is_inside && !text.starts_with('#') && !text.starts_with('[') && equals != text.npos;
    if (is_value) values.emplace(trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1)));
  }
  return values;
}

struct Target {
  std::string bucket, key;
};

Target parse(const std::string& target) {
  const std::string rest = target.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string bucket = rest.substr(0, slash);
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  const bool is_bucket = !bucket.empty() && std::all_of(bucket.begin(), bucket.end(), is_letter) &&
                         bucket.find("..") == std::string::npos && bucket.front() != '.' && bucket.front() != '-';
  if (!is_bucket || slash == std::string::npos || slash + 1 == rest.size())
    throw Error(Errc::invalid_argument, "this names no object").in(target).hint("s3://bucket/path/of/the/object");
  return {bucket, rest.substr(slash + 1)};
}

std::optional<Error> explain(const net::Headers& headers, const S3Account& account) {
  const std::string_view region = headers.get("x-amz-bucket-region");
  if (!region.empty() && region != account.region && (headers.status == 301 || headers.status == 400)) {
    return Error(Errc::io, fmt::format("the bucket is in another region, {}", quote(region.substr(0, 40))))
        .hint(fmt::format("set AWS_REGION={}", region.substr(0, 40)));
  }
  if (headers.status == 401 || headers.status == 403) {
    const bool is_signed = !account.key_id.empty();
    return Error(Errc::io, "S3 does not allow it")
        .hint(is_signed ? "check the bucket's rights, the credentials, and the clock of this machine"
                        : "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
  }
  return std::nullopt;
}

}  // namespace

S3Account account_of_user() {
  const std::string home = variable("HOME");
  const std::string profile =
      first_of(first_of(variable("AWS_PROFILE"), variable("AWS_DEFAULT_PROFILE")), std::string("default"));
  const auto config = section_of(first_of(variable("AWS_CONFIG_FILE"), home + "/.aws/config"),
                                 profile == "default" ? profile : "profile " + profile);
  const auto get = [](const std::map<std::string, std::string>& values, const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string() : found->second;
  };
  S3Account account;
  account.region = first_of(first_of(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION")),
                            first_of(get(config, "region"), "us-east-1"));
  account.endpoint =
      first_of(first_of(variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL")), get(config, "endpoint_url"));
  while (account.endpoint.ends_with('/')) account.endpoint.pop_back();
  account.key_id = variable("AWS_ACCESS_KEY_ID");
  account.secret = variable("AWS_SECRET_ACCESS_KEY");
  account.session_token = variable("AWS_SESSION_TOKEN");
  if (!account.key_id.empty() && !account.secret.empty()) return account;
  auto credentials = section_of(first_of(variable("AWS_SHARED_CREDENTIALS_FILE"), home + "/.aws/credentials"), profile);
  if (credentials.empty()) credentials = config;
  account.key_id = get(credentials, "aws_access_key_id");
  account.secret = get(credentials, "aws_secret_access_key");
  account.session_token = get(credentials, "aws_session_token");
  return account;
}

net::Remote remote_of_s3(const std::string& target, const S3Account& account, const net::Access& base) {
  const auto [bucket, key] = parse(target);
  const std::string path = hub::percent_encoded(key, true);
  const bool has_dots = bucket.find('.') != std::string::npos;  // which no certificate of Amazon's is for
  net::Remote remote;
  remote.name = target;
  if (!account.endpoint.empty())
    remote.url = fmt::format("{}/{}/{}", account.endpoint, bucket, path);
  else if (has_dots)
    remote.url = fmt::format("https://s3.{}.amazonaws.com/{}/{}", account.region, bucket, path);
  else
    remote.url = fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, account.region, path);
  auto access = std::make_shared<net::Access>(base);
  if (!account.key_id.empty() && !account.secret.empty()) {
    access->aws = {account.region, account.key_id, account.secret};
    access->headers.push_back(fmt::format("x-amz-content-sha256: {}", kSha256OfNothing));
    if (!account.session_token.empty()) access->headers.push_back("x-amz-security-token: " + account.session_token);
  }
  access->explain = [account](const net::Headers& headers) { return explain(headers, account); };
  remote.access = std::move(access);
  return remote;
}

S3Files::S3Files(std::shared_ptr<net::HttpClient> client) : client_(std::move(client)) {}

net::Remote S3Files::remote(const std::string& name) const {
  return remote_of_s3(name, account_of_user(), *client_->access());
}

SourcePtr S3Files::open(const std::string& name) const { return net::http_source(client_, remote(name)); }

bool S3Files::exists(const std::string& name) const { return is_there(*client_, remote(name)); }

}  // namespace ballast::store
