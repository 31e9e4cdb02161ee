// Stores: everything that holds files elsewhere, with one client for all of them.
#pragma once

#include <ballast/remote.hpp>

#include <memory>
#include <string_view>

#include "net/http_client.hpp"
#include "stores/hub/files.hpp"

namespace ballast::store {

struct Stores {
  explicit Stores(const RemoteOptions& options);
  Stores(const RemoteOptions& options, std::shared_ptr<net::HttpClient> shared);

  const Files& of(std::string_view name) const;

  hub::Settings settings;
  std::shared_ptr<net::HttpClient> client;
  FilesPtr http;
  std::shared_ptr<const hub::HubFiles> hub;
  FilesPtr s3;
};

}  // namespace ballast::store
