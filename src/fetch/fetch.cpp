#include <ballast/error.hpp>
#include <ballast/fetch.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/text.hpp"
#include "fetch/index_files.hpp"
#include "fetch/into_cache.hpp"
#include "fetch/into_folder.hpp"
#include "net/addresses.hpp"
#include "stores/http_files.hpp"
#include "stores/s3_files.hpp"
#include "stores/stores.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

bool is_wanted(const std::string& path, const FetchOptions& options) {
  const auto matches = [&](const std::string& glob) { return glob_match(glob, path); };
  const bool is_included =
      options.include.empty() || std::any_of(options.include.begin(), options.include.end(), matches);
  return is_included && std::none_of(options.exclude.begin(), options.exclude.end(), matches);
}

// What the path of an address names in the listing: one file, an index with its shards, a folder, or everything.
std::vector<hub::Entry> named_entries(const hub::HubFiles& files, const hub::HubAddress& address,
                                      const hub::Revision& revision) {
  const hub::Listing& listing = *revision.listing;
  if (address.path.empty()) return listing.entries;
  if (const hub::Entry* entry = listing.find(address.path)) {
    std::vector<hub::Entry> entries = {*entry};
    if (!fetching::is_index(address.path)) return entries;
    for (const std::string& shard : fetching::files_of_index(*files.open(address.text()))) {
      const auto beside = files.parse(files.beside(address.text(), shard));
      const hub::Entry* found = listing.find(beside->path);
      if (found == nullptr)
        throw Error(Errc::not_found, "the index names " + quote(shard) + ", which the repository does not have");
      entries.push_back(*found);
    }
    return entries;
  }
  std::vector<hub::Entry> entries;
  std::copy_if(listing.entries.begin(), listing.entries.end(), std::back_inserter(entries),
               [&](const hub::Entry& entry) { return entry.path.starts_with(address.path + "/"); });
  return entries;
}

FetchReport fetch_from_hub(const store::Stores& stores, const hub::HubAddress& address, const FetchOptions& options) {
  const hub::HubFiles& files = *stores.hub;
  if (stores.settings.is_offline) {
    throw Error(Errc::invalid_argument, stores.settings.offline_because + ", so nothing can be fetched")
        .in(address.text());
  }
  const auto revision = files.revision(address);
  if (!revision->listing) throw Error(Errc::io, revision->note).in(address.text());
  auto entries = named_entries(files, address, *revision);
  if (entries.empty()) {
    if (options.folder.empty()) revision->cache.mark_missing(revision->commit, address.path);
    static_cast<void>(files.open(address.text()));  // says what is wrong
  }
  std::erase_if(entries, [&](const hub::Entry& entry) { return !is_wanted(entry.path, options); });
  if (entries.empty()) throw Error(Errc::not_found, "no file matches").in(address.text());
  const fetching::HubJob job{files, *stores.client, *revision, std::move(entries), options};
  return options.folder.empty() ? fetching::into_cache(job) : fetching::into_folder(job);
}

// The last component of an address without its query, as a name in a folder.
std::string name_of(const std::string& target) {
  std::string path = target.substr(0, target.find_first_of("?#"));
  std::string name = path.substr(path.rfind('/') + 1);
  if (!hub::is_inner_path(name))
    throw Error(Errc::invalid_argument, "the address does not end in the name of a file")
        .in(net::without_secrets(target));
  return name;
}

FetchReport fetch_from_server(const store::Stores& stores, const std::string& target, const FetchOptions& options) {
  if (options.folder.empty()) {
    throw Error(Errc::invalid_argument, "where should the file go? Only the Hub has a cache")
        .in(net::without_secrets(target))
        .hint("give a folder with " + Advice::mention(Remedy::fetch_folder));
  }
  const Files& files = stores.of(target);
  std::vector<std::string> targets = {target};
  if (fetching::is_index(name_of(target))) {
    for (const std::string& shard : fetching::files_of_index(*files.open(target)))
      targets.push_back(files.beside(target, shard));
  }
  std::erase_if(targets, [&](const std::string& one) { return !is_wanted(name_of(one), options); });
  if (targets.empty()) throw Error(Errc::not_found, "no file matches").in(net::without_secrets(target));
  std::vector<fetching::NamedRemote> remotes;
  for (const std::string& one : targets) {
    net::Remote remote = one.starts_with("s3://")
                             ? store::remote_of_s3(one, store::account_of_user(), *stores.client->access())
                             : store::remote_at(one, stores.client->access());
    remotes.push_back({name_of(one), std::move(remote)});
  }
  return fetching::into_folder(*stores.client, std::move(remotes), options);
}

}  // namespace

FetchReport fetch(const std::string& target, const FetchOptions& options) {
  if (!is_remote(target)) {
    throw Error(Errc::invalid_argument, "this is no address, so there is nothing to fetch")
        .in(net::without_secrets(target))
        .hint("hf://org/name, https://host/path or s3://bucket/key");
  }
  const store::Stores stores(options.remote);
  const auto address = target.starts_with("s3://") ? std::nullopt : stores.hub->parse(target);
  FetchReport report = address ? fetch_from_hub(stores, *address, options) : fetch_from_server(stores, target, options);
  report.target = net::without_secrets(target);
  std::sort(report.files.begin(), report.files.end(),
            [](const FetchedFile& a, const FetchedFile& b) { return a.path < b.path; });
  return report;
}

}  // namespace ballast
