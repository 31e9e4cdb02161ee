#include "stores/hub/listing.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>

#include "core/text.hpp"
#include "net/addresses.hpp"

namespace ballast::hub {
namespace {

constexpr std::size_t kMostPageBytes = 32 << 20, kMostEntries = 1'000'000;
constexpr std::size_t kMostOddBytes = 200;
constexpr unsigned kMostPages = 2'000;

bool is_hex(std::string_view text, std::size_t size) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == size && std::all_of(text.begin(), text.end(), is_digit);
}

std::string text_in(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found != nullptr && found->is_text() ? found->text() : std::string();
}

// A number that support can find the request by.
std::string request_id(const net::Headers& headers) {
  for (const char* name : {"x-request-id", "x-amzn-trace-id", "x-amz-cf-id"}) {
    if (const std::string_view id = headers.get(name); !id.empty())
      return fmt::format(" (request {})", quote(id.substr(0, 80)));
  }
  return {};
}

std::string log_in(const Settings& settings) {
  return settings.token.empty() ? "log in with 'hf auth login', or set HF_TOKEN"
                                : "use a token of an account that may read it";
}

std::optional<Error> explain(const net::Headers& headers, const Settings& settings, const HubAddress& address) {
  const std::string_view code = headers.get("x-error-code");
  const int status = headers.status;
  const std::string id = request_id(headers);
  if (code == "GatedRepo") {
    return Error(Errc::io, fmt::format("{} is for those who have accepted its terms{}", address.repository, id))
        .hint(fmt::format("open {}/{} in a browser and accept them; then {}", settings.endpoint, address.repository,
                          log_in(settings)));
  }
  if (code == "RepoNotFound") {
    return Error(Errc::not_found,
                 fmt::format("the Hub has no repository {}, or it is private{}", address.repository, id))
        .hint("check its name; if it is private, " + log_in(settings));
  }
  if (code == "RevisionNotFound") {
    return Error(Errc::not_found,
                 fmt::format("{} has no revision {}{}", address.repository, quote(address.revision_or_main()), id))
        .hint(fmt::format("{}/{} lists its branches and tags", settings.endpoint, address.repository));
  }
  if (code == "EntryNotFound")
    return Error(Errc::not_found, fmt::format("{} has no such file{}", address.repository, id));
  if (status == 401) {
    const bool has_token = !settings.token.empty();
    return Error(Errc::io, has_token ? fmt::format("the Hub does not accept the token{}", id)
                                     : fmt::format("the Hub wants to know who asks{}", id))
        .hint(has_token ? "it may have expired: log in again with 'hf auth login', or set HF_TOKEN" : log_in(settings));
  }
  if (status == 403) {
    const std::string_view why = headers.get("x-error-message");
    return Error(Errc::io, why.empty() ? fmt::format("the Hub does not allow it{}", id)
                                       : fmt::format("the Hub does not allow it: {}{}", quote(why.substr(0, 200)), id))
        .hint(log_in(settings));
  }
  if (status == 429) {
    return Error(Errc::io, fmt::format("the Hub has had too many requests from here{}", id))
        .hint(settings.token.empty() ? "wait some minutes; who is logged in may ask more often" : "wait some minutes");
  }
  return std::nullopt;
}

// A page may lie on the endpoint only. Mirrors pass on the Hub's own addresses.
std::string on_endpoint(std::string address, const Settings& settings) {
  constexpr std::string_view kHub = "https://huggingface.co/";
  if (address.starts_with(kHub)) address.replace(0, kHub.size() - 1, settings.endpoint);
  const net::Url url = net::resolve(settings.endpoint + "/", address);
  if (url.origin != net::resolve("", settings.endpoint + "/").origin)
    throw Error(Errc::unsafe, "the Hub's list of files goes on at another host");
  return url.whole;
}

// "org/new" in …/api/models/org/new/tree/…
std::string repository_in(const std::string& url) {
  constexpr std::string_view kBefore = "/api/models/";
  const std::size_t begin = url.find(kBefore), end = url.find("/tree/");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return url.substr(begin + kBefore.size(), end - begin - kBefore.size());
}

}  // namespace

std::string next_page(const net::Headers& headers) {
  std::string_view links = headers.get("link");
  while (!links.empty()) {
    const std::size_t open = links.find('<'), close = links.find('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
    const std::string_view address = links.substr(open + 1, close - open - 1);
    links.remove_prefix(close + 1);
    const std::string_view facts = links.substr(0, links.find('<'));
    if (facts.find("rel=\"next\"") != std::string_view::npos) return std::string(address);
  }
  return {};
}

void add_page(Listing& listing, std::string_view body) {
  const Json page = Json::parse(body);
  for (const Json& item : page.list()) {
    if (!item.is_object()) throw Error(Errc::malformed, "this is no list of files");
    if (text_in(item, "type") != "file") continue;
    Entry entry{text_in(item, "path"), item.at("size").count(), text_in(item, "oid"), {}};
    if (const Json* lfs = item.find("lfs"); lfs != nullptr && lfs->is_object()) {
      entry.lfs_sha256 = text_in(*lfs, "oid");
      if (entry.lfs_sha256.starts_with("sha256:")) entry.lfs_sha256.erase(0, 7);
      entry.size = lfs->at("size").count();
      if (!is_hex(entry.lfs_sha256, 64)) throw Error(Errc::malformed, "a large file has no SHA-256");
    }
    if (!is_hex(entry.blob_id, 40)) throw Error(Errc::malformed, "a file has no Git id");
    if (is_inner_path(entry.path))
      listing.entries.push_back(std::move(entry));
    else
      listing.odd_names.push_back(entry.path.substr(0, kMostOddBytes));
    if (listing.entries.size() + listing.odd_names.size() > kMostEntries)
      throw Error(Errc::limit, "the repository has too many files");
  }
}

const Entry* Listing::find(std::string_view path) const {
  const auto found = std::lower_bound(entries.begin(), entries.end(), path,
                                      [](const Entry& entry, std::string_view wanted) { return entry.path < wanted; });
  return found != entries.end() && found->path == path ? &*found : nullptr;
}

std::string url_of(const Settings& settings, const std::string& repository, const std::string& commit,
                   const std::string& path) {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, repository, percent_encoded(commit, false),
                     percent_encoded(path, true));
}

net::AccessPtr access_to(const Settings& settings, const HubAddress& address, const net::HttpClient& client) {
  auto access = std::make_shared<net::Access>(*client.access());
  access->allows_plain = settings.endpoint.starts_with("http://");
  if (!settings.token.empty()) access->headers.push_back("Authorization: Bearer " + settings.token);
  access->explain = [settings, address](const net::Headers& headers) { return explain(headers, settings, address); };
  return access;
}

Listing list_repository(net::HttpClient& client, const Settings& settings, const HubAddress& address,
                        const net::AccessPtr& access, unsigned attempts) {
  Listing listing;
  const HubAddress whole{address.repository, address.revision, {}};
  std::string url = fmt::format("{}/api/models/{}/tree/{}?recursive=true&expand=false", settings.endpoint,
                                address.repository, percent_encoded(address.revision_or_main(), false));
  std::set<std::string> seen;
  try {
    for (unsigned pages = 0; !url.empty(); ++pages) {
      if (pages == kMostPages || !seen.insert(url).second)
        throw Error(Errc::io, "the Hub's list of files does not end");
      net::Remote remote;
      remote.url = url;
      remote.name = whole.text();
      remote.access = access;
      remote.attempts = attempts;
      net::Page page;
      try {
        page = client.get(remote, kMostPageBytes);
      } catch (Error& error) {
        if (error.code() != Errc::io) throw;
        listing.away = error;
        return listing;
      }
      const int status = page.headers.status;
      if (status != 200) {
        if (auto error = explain(page.headers, settings, address)) throw *std::move(error);
        Error error(Errc::io, fmt::format("the Hub answers with status {}", status));
        if (status < 500) throw error;
        listing.away = error.in(whole.text());
        return listing;
      }
      if (pages == 0) {
        listing.commit = page.headers.get("x-repo-commit");
        const std::string name = repository_in(remote.final_url);
        if (name != address.repository && is_repository_name(name)) listing.renamed_to = name;
      }
      const std::string_view commit = page.headers.get("x-repo-commit");
      if (!commit.empty() && commit != listing.commit)
        throw Error(Errc::changed, "the revision changed while it was listed").hint("open it again");
      add_page(listing, page.body);
      const std::string next = next_page(page.headers);
      url = next.empty() ? std::string() : on_endpoint(next, settings);
    }
    if (listing.commit.empty() && is_commit(address.revision)) listing.commit = address.revision;
    if (!is_commit(listing.commit)) throw Error(Errc::io, "the Hub does not say which commit this is");
  } catch (Error& error) {
    throw error.in(whole.text());
  }
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return listing;
}

}  // namespace ballast::hub
