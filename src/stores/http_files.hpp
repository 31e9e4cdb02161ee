// HttpFiles: files by their https:// addresses.
#pragma once

#include <ballast/source.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/http_client.hpp"

namespace ballast::store {

class HttpFiles final : public Files {
 public:
  explicit HttpFiles(std::shared_ptr<net::HttpClient> client) : client_(std::move(client)) {}

  SourcePtr open(const std::string& name) const override;
  bool exists(const std::string& name) const override;
  std::optional<std::vector<std::string>> list(const std::string&) const override { return std::nullopt; }
  std::string inside(const std::string& folder, const std::string& file) const override;
  std::string beside(const std::string& name, const std::string& file) const override;
  std::vector<std::string> notes(const std::string& name) const override;
  unsigned opens_at_once() const override { return 16; }

 private:
  std::shared_ptr<net::HttpClient> client_;
};

// What is known about a file before the first answer.
net::Remote remote_at(const std::string& url, const net::AccessPtr& access);

// One byte tells as much as a HEAD, which signed addresses refuse.
bool is_there(net::HttpClient& client, net::Remote remote);

}  // namespace ballast::store
