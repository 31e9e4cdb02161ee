#include "stores/http_files.hpp"

#include <array>
#include <utility>

#include <ballast/error.hpp>

#include "net/addresses.hpp"
#include "net/http_source.hpp"
#include "stores/hub/address.hpp"

namespace ballast::store {
namespace {

std::string without_query(const std::string& url) { return url.substr(0, url.find_first_of("?#")); }

}  // namespace

net::Remote remote_at(const std::string& url, const net::AccessPtr& access) {
  net::Remote remote;
  remote.url = url;
  remote.name = net::without_secrets(url);
  remote.access = access;
  return remote;
}

bool is_there(net::HttpClient& client, net::Remote remote) {
  std::array<std::byte, 1> byte;
  net::Fetch fetch{{0, 1, false}, byte};
  try {
    client.fetch(remote, {&fetch, 1});
    return true;
  } catch (const Error& error) {
    if (error.code() == Errc::not_found) return false;
    throw;
  }
}

SourcePtr HttpFiles::open(const std::string& name) const {
  return net::http_source(client_, remote_at(name, client_->access()));
}

bool HttpFiles::exists(const std::string& name) const { return is_there(*client_, remote_at(name, client_->access())); }

// The query of an address belongs to its own file.
std::string HttpFiles::inside(const std::string& folder, const std::string& file) const {
  const std::string path = without_query(folder);
  return path + (path.ends_with('/') ? "" : "/") + hub::percent_encoded(file, true);
}

std::string HttpFiles::beside(const std::string& name, const std::string& file) const {
  const std::string path = without_query(name);
  return path.substr(0, path.rfind('/') + 1) + hub::percent_encoded(file, true);
}

std::vector<std::string> HttpFiles::notes(const std::string& name) const {
  if (!client_->ignores_ranges(net::without_secrets(name))) return {};
  return {"the server does not send ranges of files: every read begins at the beginning of the file"};
}

}  // namespace ballast::store
