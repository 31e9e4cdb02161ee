// What a commit of a repository has, as the Hub lists it; and what the Hub's refusals mean.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http_client.hpp"
#include "stores/hub/address.hpp"
#include "stores/hub/cache.hpp"

namespace ballast::hub {

struct Listing {
  std::string commit;
  std::string renamed_to;              // "org/new", if the repository has another name now
  std::vector<Entry> entries;          // by path
  std::optional<Error> away;           // the Hub did not answer, or not now: nothing else is known then
  std::vector<std::string> odd_names;  // that would lead out of the repository; they are not among the entries

  const Entry* find(std::string_view path) const;
};

// Asks the Hub, page by page. `attempts` is for a Hub that does not answer.
Listing list_repository(net::HttpClient& client, const Settings& settings, const HubAddress& address,
                        const net::AccessPtr& access, unsigned attempts);

// The parts of it, which take texts from a stranger. Entries whose names would lead out of the repository go to
// odd_names. Throws Errc::malformed, Errc::limit.
void add_page(Listing& listing, std::string_view body);

// The address in "Link: <https://huggingface.co/api/…>; rel="next"", or nothing.
std::string next_page(const net::Headers& headers);

// With the token, and with sentences for what the Hub refuses.
net::AccessPtr access_to(const Settings& settings, const HubAddress& address, const net::HttpClient& client);

// The address of a file's bytes.
std::string url_of(const Settings& settings, const std::string& repository, const std::string& commit,
                   const std::string& path);

}  // namespace ballast::hub
