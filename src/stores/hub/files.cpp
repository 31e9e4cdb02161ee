#include "stores/hub/files.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <ballast/suggest.hpp>

#include "core/text.hpp"
#include "net/http_source.hpp"

namespace ballast::hub {
namespace {

std::string joined(const std::string& folder, const std::string& file) {
  return folder.empty() ? file : folder + "/" + file;
}

Error no_such_file(const Revision& revision, const std::string& path) {
  Error error(Errc::not_found, path.empty() ? fmt::format("{} is a repository, not a file", revision.address.repository)
                                            : fmt::format("{} has no file {} at {}", revision.address.repository,
                                                          quote(path), revision.commit.substr(0, 12)));
  std::vector<std::string_view> paths;
  for (const Entry& entry : revision.listing->entries) paths.push_back(entry.path);
  if (const auto near = nearest(path, paths)) error.hint(fmt::format("did you mean {}?", *near));
  return error;
}

}  // namespace

HubFiles::HubFiles(std::shared_ptr<net::HttpClient> client, Settings settings)
    : client_(std::move(client)), settings_(std::move(settings)) {}

HubAddress HubFiles::address_of(const std::string& name) const {
  if (auto address = parse(name)) return *std::move(address);
  throw Error(Errc::invalid_argument, "this is no address of the Hub").in(name);
}

std::shared_ptr<const Revision> HubFiles::from_cache(const HubAddress& address, std::string note) const {
  HubCache cache(settings_, address.repository);
  auto commit = cache.commit_of(address.revision_or_main());
  if (!commit) return nullptr;
  return std::make_shared<Revision>(Revision{{address.repository, address.revision, {}},
                                             std::move(cache),
                                             *std::move(commit),
                                             std::nullopt,
                                             nullptr,
                                             std::move(note)});
}

// A commit never changes, so nobody has to be asked what a whole one has.
std::shared_ptr<const Revision> HubFiles::whole_commit(const HubAddress& address) const {
  if (!is_commit(address.revision)) return nullptr;
  HubCache cache(settings_, address.repository);
  auto entries = cache.whole_snapshot(address.revision);
  if (!entries) return nullptr;
  return std::make_shared<Revision>(Revision{{address.repository, address.revision, {}},
                                             std::move(cache),
                                             address.revision,
                                             Listing{address.revision, {}, *std::move(entries), {}, {}},
                                             access_to(settings_, address, *client_),
                                             {}});
}

Error HubFiles::not_cached(const Revision& revision, const std::string& path) const {
  const std::string what = path.empty() ? revision.address.repository : revision.address.repository + "/" + path;
  if (!revision.commit.empty() && revision.cache.is_known_missing(revision.commit, path))
    return Error(Errc::not_found, fmt::format("{} has no file {}", revision.address.repository, quote(path)));
  return Error(Errc::not_found,
               fmt::format("{}, and {} is not in the cache {}", settings_.offline_because, what, settings_.cache))
      .hint("with the network, " + Advice::mention(Remedy::fetch, revision.address.text()) + " brings it");
}

std::shared_ptr<const Revision> HubFiles::look_up(const HubAddress& address) const {
  if (settings_.is_offline) {
    if (auto cached = from_cache(address, {})) return cached;
    throw not_cached({address, HubCache(settings_, address.repository), {}, {}, {}, {}}, {}).in(address.text());
  }
  if (auto whole = whole_commit(address)) return whole;
  const auto cached = from_cache(address, {});
  auto found = std::make_shared<Revision>(
      Revision{address, HubCache(settings_, address.repository), {}, {}, access_to(settings_, address, *client_), {}});
  // If the cache knows the revision, a Hub that does not answer is not waited for.
  found->listing = list_repository(*client_, settings_, address, found->access, cached ? 1 : 0);
  if (found->listing->away) {
    if (!cached) throw *found->listing->away;
    return from_cache(address, fmt::format("the Hub does not answer, so this is what the cache has of commit {}",
                                           cached->commit.substr(0, 12)));
  }
  found->commit = found->listing->commit;
  if (!found->listing->renamed_to.empty())
    found->note = fmt::format("{} is called {} now", address.repository, found->listing->renamed_to);
  return found;
}

std::shared_ptr<const Revision> HubFiles::revision(const HubAddress& address) const {
  const std::lock_guard lock(mutex_);
  auto& known = revisions_[{address.repository, address.revision}];
  if (!known) known = look_up({address.repository, address.revision, {}});
  return known;
}

net::Remote HubFiles::remote_of(const Revision& revision, const Entry& entry) const {
  net::Remote remote;
  remote.url = url_of(settings_, revision.address.repository, revision.commit, entry.path);
  remote.name = HubAddress{revision.address.repository, revision.address.revision, entry.path}.text();
  remote.access = revision.access;
  remote.digest = entry.digest();
  remote.total = entry.size;
  return remote;
}

SourcePtr HubFiles::open(const std::string& name) const {
  const HubAddress address = address_of(name);
  const HubCache cache(settings_, address.repository);
  // A commit never changes, so nobody has to be asked.
  if (is_commit(address.revision) && !address.path.empty()) {
    if (const auto file = cache.find(address.revision, address.path)) return file_source(*file);
  }
  const auto at = revision(address);
  if (!at->listing) {
    const auto file = address.path.empty() ? std::nullopt : cache.find(at->commit, address.path);
    if (!file) throw not_cached(*at, address.path).in(address.text());
    return file_source(*file);
  }
  const Entry* entry = at->listing->find(address.path);
  if (entry == nullptr) throw no_such_file(*at, address.path).in(address.text());
  if (const auto file = cache.find(at->commit, *entry)) return file_source(*file);
  if (const auto blob = cache.find_blob(entry->digest(), entry->size)) return file_source(*blob);
  return net::http_source(client_, remote_of(*at, *entry));
}

bool HubFiles::exists(const std::string& name) const {
  const HubAddress address = address_of(name);
  const auto at = revision(address);
  if (at->cache.find(at->commit, address.path)) return true;
  return at->listing && at->listing->find(address.path) != nullptr;
}

std::optional<std::vector<std::string>> HubFiles::list(const std::string& name) const {
  const HubAddress address = address_of(name);
  const auto at = revision(address);
  if (!at->listing) return at->cache.list(at->commit, address.path);
  if (!address.path.empty() && at->listing->find(address.path) != nullptr) return std::nullopt;
  const std::string prefix = address.path.empty() ? "" : address.path + "/";
  std::set<std::string> names;
  for (const Entry& entry : at->listing->entries) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string rest = entry.path.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  }
  if (names.empty() && !address.path.empty()) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

std::string HubFiles::inside(const std::string& folder, const std::string& file) const {
  HubAddress address = address_of(folder);
  address.path = joined(address.path, file);
  return address.text();
}

std::string HubFiles::beside(const std::string& name, const std::string& file) const {
  HubAddress address = address_of(name);
  const std::size_t slash = address.path.rfind('/');
  address.path = slash == std::string::npos ? file : address.path.substr(0, slash + 1) + file;
  return address.text();
}

std::vector<std::string> HubFiles::notes(const std::string& name) const {
  const auto at = revision(address_of(name));
  return at->note.empty() ? std::vector<std::string>() : std::vector{at->note};
}

}  // namespace ballast::hub
