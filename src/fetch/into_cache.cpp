#include "fetch/into_cache.hpp"

#include <set>

#include "net/download.hpp"

namespace ballast::fetching {

FetchReport into_cache(const HubJob& job) {
  const hub::HubCache& cache = job.revision.cache;
  const std::string& commit = job.revision.commit;
  FetchReport report;
  report.commit = commit;
  report.folder = cache.snapshot(commit);
  report.left_out = job.revision.listing->odd_names;

  cache.make_folders();
  cache.set_ref(job.revision.address.revision_or_main(), commit);
  // A tree says that these are all files: it is what a later reader of the commit believes.
  if (report.left_out.empty()) cache.write_tree(commit, job.revision.listing->entries);
  std::vector<net::Download> downloads;
  std::set<std::string> digests;  // two paths may have the same bytes
  for (const hub::Entry& entry : job.entries) {
    const bool was_there = cache.find(commit, entry) || cache.find_blob(entry.digest(), entry.size);
    report.files.push_back({entry.path, report.folder + "/" + entry.path, entry.size, entry.digest(), was_there});
    if (was_there || !digests.insert(entry.digest()).second) continue;
    const std::string blob = cache.blob(entry.digest());
    downloads.push_back({job.files.remote_of(job.revision, entry), blob, blob + ".ballast.incomplete",
                         cache.lock_path(entry.digest())});
  }
  net::download(job.client, downloads, {job.options.in_flight, job.options.durable, job.options.progress});
  for (const hub::Entry& entry : job.entries) cache.add_link(commit, entry);
  return report;
}

}  // namespace ballast::fetching
