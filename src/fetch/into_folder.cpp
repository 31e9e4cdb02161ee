#include "fetch/into_folder.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "io/posix.hpp"
#include "net/download.hpp"
#include "stores/hub/cache.hpp"

namespace ballast::fetching {
namespace {

namespace fs = std::filesystem;

// Where fetching a file leaves its traces.
struct Traces {
  std::string metadata, partial, lock;
};

Traces traces_of(const std::string& folder, const std::string& path) {
  const std::string base = folder + "/.cache/huggingface/download/" + path;
  return {base + ".metadata", base + ".ballast.incomplete", base + ".lock"};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Three lines: the commit, the digest, and when.
struct Metadata {
  std::string commit, digest;
  double time = 0;
};

std::optional<Metadata> read_metadata(const std::string& path) {
  const auto text = hub::read_small_file(path);
  if (!text) return std::nullopt;
  const std::size_t first = text->find('\n'), second = text->find('\n', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  return Metadata{text->substr(0, first), text->substr(first + 1, second - first - 1),
                  std::strtod(text->c_str() + second + 1, nullptr)};
}

// Whether the file is as an earlier fetch() left it.
bool is_untouched(const std::string& path, const std::optional<Metadata>& metadata) {
  struct stat info = {};
  if (!metadata || stat(path.c_str(), &info) != 0) return false;
  constexpr double kSlack = 1;
  if (metadata->time > seconds_now() + kSlack) return false;  // no run of ours has written that
  const double changed = static_cast<double>(info.st_mtim.tv_sec) + static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
  return changed <= metadata->time + kSlack;
}

enum class There { nothing, the_same, an_earlier_one, a_file_of_the_users };

There look_at(const std::string& path, const std::optional<Metadata>& metadata, const hub::Entry& entry) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return io::is_name_taken(path) ? There::a_file_of_the_users : There::nothing;
  if (!S_ISREG(info.st_mode)) return There::a_file_of_the_users;
  // The folder may come from a stranger, with its records: only the bytes tell whether a file is the same.
  const bool has_size = static_cast<std::uint64_t>(info.st_size) == entry.size;
  if (has_size && net::digest_of_file(path, entry.digest()) == entry.digest()) return There::the_same;
  return is_untouched(path, metadata) ? There::an_earlier_one : There::a_file_of_the_users;
}

void refuse_to_replace(const std::string& path) {
  throw Error(Errc::invalid_argument, "already exists")
      .of_system(EEXIST)
      .in(path)
      .hint("replace it with " + Advice::mention(Remedy::overwrite));
}

// Nothing that is in the folder already, such as a link, may lead out of it.
void check_stays_inside(const std::string& folder, const std::string& path) {
  fs::path at = folder;
  for (const fs::path& component : fs::path(path).parent_path()) {
    at /= component;
    std::error_code error;
    if (fs::is_symlink(at, error)) throw Error(Errc::unsafe, "is a link, which may lead elsewhere").in(at.string());
  }
}

net::DownloadOptions download_options(const FetchOptions& options) {
  return {options.in_flight, options.durable, options.progress};
}

// The size, and what tells these bytes from others.
void ask_for_size(net::HttpClient& client, net::Remote& remote) {
  std::array<std::byte, 1> byte;
  net::Fetch first{{0, 1, false}, byte};
  client.fetch(remote, {&first, 1});
}

}  // namespace

FetchReport into_folder(const HubJob& job) {
  const std::string& folder = job.options.folder;
  FetchReport report;
  report.commit = job.revision.commit;
  report.folder = folder;
  report.left_out = job.revision.listing->odd_names;
  std::vector<net::Download> downloads;
  for (const hub::Entry& entry : job.entries) {
    const std::string path = folder + "/" + entry.path;
    const Traces traces = traces_of(folder, entry.path);
    check_stays_inside(folder, entry.path);
    check_stays_inside(folder, ".cache/huggingface/download/" + entry.path);
    const There there = look_at(path, read_metadata(traces.metadata), entry);
    if (there == There::a_file_of_the_users && !job.options.overwrite) refuse_to_replace(path);
    report.files.push_back({entry.path, path, entry.size, entry.digest(), there == There::the_same});
    if (there == There::the_same) continue;
    downloads.push_back(
        {job.files.remote_of(job.revision, entry), path, traces.partial, traces.lock, false, there != There::nothing});
  }
  net::download(job.client, downloads, download_options(job.options));
  if (const std::string ignore = folder + "/.cache/huggingface/.gitignore"; !hub::read_small_file(ignore))
    hub::write_small_file(ignore, "*");
  for (const hub::Entry& entry : job.entries) {
    hub::write_small_file(traces_of(folder, entry.path).metadata,
                          fmt::format("{}\n{}\n{}\n", report.commit, entry.digest(), seconds_now()));
  }
  return report;
}

FetchReport into_folder(net::HttpClient& client, std::vector<NamedRemote> remotes, const FetchOptions& options) {
  FetchReport report;
  report.folder = options.folder;
  std::vector<net::Download> downloads;
  for (auto& [name, remote] : remotes) {
    const std::string path = options.folder + "/" + name;
    const bool is_taken = io::is_name_taken(path);
    if (is_taken && !options.overwrite) refuse_to_replace(path);
    ask_for_size(client, remote);
    report.files.push_back({name, path, *remote.total, {}, false});
    downloads.push_back(
        {std::move(remote), path, path + ".ballast.incomplete", path + ".ballast.lock", true, is_taken});
  }
  net::download(client, downloads, download_options(options));
  return report;
}

}  // namespace ballast::fetching
