#include <ballast/error.hpp>
#include <ballast/http.hpp>

#include <array>
#include <memory>
#include <utility>

#include "net/http_client.hpp"
#include "net/http_source.hpp"

namespace ballast {
namespace {

class HttpFiles final : public Files {
 public:
  explicit HttpFiles(const HttpOptions& options) : client_(std::make_shared<net::HttpClient>(options)) {}

  SourcePtr open(const std::string& name) const override { return net::http_source(client_, name); }

  // One byte tells as much as a HEAD, which signed addresses refuse.
  bool exists(const std::string& name) const override {
    std::array<std::byte, 1> byte;
    net::Fetch fetch{{0, 1, false}, byte};
    net::Remote remote;
    remote.url = name;
    try {
      client_->fetch(remote, {&fetch, 1});
      return true;
    } catch (const Error& error) {
      if (error.code() == Errc::not_found) return false;
      throw;
    }
  }

  std::optional<std::vector<std::string>> list(const std::string&) const override { return std::nullopt; }

  // The query of an address belongs to its own file.
  std::string inside(const std::string& folder, const std::string& file) const override {
    const std::string path = without_query(folder);
    return path + (path.ends_with('/') ? "" : "/") + file;
  }
  std::string beside(const std::string& name, const std::string& file) const override {
    const std::string path = without_query(name);
    return path.substr(0, path.rfind('/') + 1) + file;
  }

  unsigned opens_at_once() const override { return 16; }

 private:
  static std::string without_query(const std::string& url) { return url.substr(0, url.find_first_of("?#")); }

  std::shared_ptr<net::HttpClient> client_;
};

}  // namespace

bool is_url(std::string_view target) { return target.starts_with("https://") || target.starts_with("http://"); }

FilesPtr files_for(std::string_view target, const FilesPtr& given) {
  if (!is_url(target) || given != local_files()) return given;
  static const FilesPtr shared = http_files();  // keeps its connections
  return shared;
}

FilesPtr http_files(const HttpOptions& options) { return std::make_shared<HttpFiles>(options); }

}  // namespace ballast
