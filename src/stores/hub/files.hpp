// HubFiles: the files of the Hub's repositories, by hf:// and web addresses: from the cache, else by ranges.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "stores/hub/listing.hpp"

namespace ballast::hub {

// A repository at one revision, looked up once.
struct Revision {
  HubAddress address;  // without a path
  HubCache cache;
  std::string commit;
  std::optional<Listing> listing;  // nothing if only the cache is known
  net::AccessPtr access;
  std::string note;  // why only the cache is known; empty if nothing is worth saying
};

class HubFiles final : public Files {
 public:
  HubFiles(std::shared_ptr<net::HttpClient> client, Settings settings);

  const Settings& settings() const { return settings_; }
  std::optional<HubAddress> parse(std::string_view target) const { return parse_address(target, settings_.endpoint); }

  SourcePtr open(const std::string& name) const override;
  bool exists(const std::string& name) const override;
  std::optional<std::vector<std::string>> list(const std::string& name) const override;
  std::string inside(const std::string& folder, const std::string& file) const override;
  std::string beside(const std::string& name, const std::string& file) const override;
  std::vector<std::string> notes(const std::string& name) const override;
  bool prefers_whole(const std::string&) const override { return true; }  // as transformers does
  unsigned opens_at_once() const override { return 16; }

  // Asks the Hub, once for each repository and revision, unless this is offline, the cache has a whole commit, or the
  // Hub does not answer and the cache knows the revision. Throws Errc::not_found, with what to do, if nobody knows it.
  std::shared_ptr<const Revision> revision(const HubAddress& address) const;

  net::Remote remote_of(const Revision& revision, const Entry& entry) const;

 private:
  HubAddress address_of(const std::string& name) const;
  std::shared_ptr<const Revision> look_up(const HubAddress& address) const;
  std::shared_ptr<const Revision> from_cache(const HubAddress& address, std::string note) const;
  std::shared_ptr<const Revision> whole_commit(const HubAddress& address) const;
  Error not_cached(const Revision& revision, const std::string& path) const;

  std::shared_ptr<net::HttpClient> client_;
  Settings settings_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::string, std::string>, std::shared_ptr<const Revision>> revisions_;
};

}  // namespace ballast::hub
