// remote_files(): one door to all stores, by the beginning of a name.
#include <ballast/error.hpp>
#include <ballast/remote.hpp>

#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "core/once.hpp"
#include "net/addresses.hpp"
#include "stores/http_files.hpp"
#include "stores/hub/files.hpp"
#include "stores/s3_files.hpp"
#include "stores/stores.hpp"

namespace ballast {
namespace store {

Stores::Stores(const RemoteOptions& options) : Stores(options, nullptr) {}

Stores::Stores(const RemoteOptions& options, std::shared_ptr<net::HttpClient> shared)
    : settings(hub::settings_of(options.hub)),
      client(shared ? std::move(shared) : std::make_shared<net::HttpClient>(hub::http_options(options.http))),
      http(std::make_shared<HttpFiles>(client)),
      hub(std::make_shared<hub::HubFiles>(client, settings)),
      s3(std::make_shared<S3Files>(client)) {}

const Files& Stores::of(std::string_view name) const {
  if (name.starts_with("s3://")) return *s3;
  if (hub->parse(name)) return *hub;
  const bool is_on_hub = name.starts_with(settings.endpoint + "/") || name.starts_with("https://huggingface.co/") ||
                         name.starts_with("https://hf.co/");
  if (settings.is_offline && is_on_hub)
    throw Error(Errc::not_found, settings.offline_because + ", and this is not in the cache")
        .in(net::without_secrets(std::string(name)));
  return *http;
}

}  // namespace store

namespace {

class RemoteFiles final : public Files {
 public:
  explicit RemoteFiles(RemoteOptions options, std::shared_ptr<net::HttpClient> shared = nullptr)
      : options_(std::move(options)), client_(std::move(shared)) {}

  SourcePtr open(const std::string& name) const override { return of(name).open(name); }
  bool exists(const std::string& name) const override { return of(name).exists(name); }
  std::optional<std::vector<std::string>> list(const std::string& name) const override { return of(name).list(name); }
  std::string inside(const std::string& folder, const std::string& file) const override {
    return of(folder).inside(folder, file);
  }
  std::string beside(const std::string& name, const std::string& file) const override {
    return of(name).beside(name, file);
  }
  std::vector<std::string> notes(const std::string& name) const override { return of(name).notes(name); }
  bool prefers_whole(const std::string& folder) const override { return of(folder).prefers_whole(folder); }
  unsigned opens_at_once() const override { return 16; }

 private:
  // Made when they are first needed: a program that opens local files looks for no token.
  const Files& of(std::string_view name) const {
    once_.run([&] { stores_.emplace(options_, client_); });
    return stores_->of(name);
  }

  RemoteOptions options_;
  std::shared_ptr<net::HttpClient> client_;
  mutable Once once_;
  mutable std::optional<store::Stores> stores_;
};

}  // namespace

bool is_remote(std::string_view target) {
  for (const std::string_view scheme : {"https://", "http://", "hf://", "s3://"})
    if (target.starts_with(scheme)) return true;
  return false;
}

std::string path_or_repository(const std::string& text) {
  if (is_remote(text) || !hub::is_repository_name(text)) return text;
  std::error_code error;
  const bool is_here = std::filesystem::exists(text, error);
  return is_here ? text : "hf://" + text;
}

FilesPtr remote_files(const RemoteOptions& options) { return std::make_shared<RemoteFiles>(options); }

namespace {

// Of programs that bring no files of their own: connections are kept, but each target is looked up anew, as the
// environment is then.
FilesPtr usual_files() {
  static std::mutex mutex;  // guards the client
  static std::shared_ptr<net::HttpClient> client;
  const std::lock_guard lock(mutex);
  const RemoteOptions options;
  const HttpOptions wanted = hub::http_options(options.http);
  const bool fits = client && client->options().idle_seconds == wanted.idle_seconds &&
                    client->options().connect_milliseconds == wanted.connect_milliseconds;
  if (!fits) client = std::make_shared<net::HttpClient>(wanted);
  return std::make_shared<RemoteFiles>(options, client);
}

}  // namespace

OpenOptions options_for(std::string_view target, OpenOptions options) {
  if (!is_remote(target) || options.files != local_files()) return options;
  options.files = options.remote ? options.remote : usual_files();
  return options;
}

}  // namespace ballast
