#include "stores/hub/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "io/posix.hpp"
#include "stores/hub/address.hpp"

namespace ballast::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSmallBytes = 64 << 20;
constexpr std::string_view kTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder can be fetched again: backups may leave it out.\n";

std::string folder_name(const std::string& repository) {
  const std::size_t slash = repository.find('/');
  return fmt::format("models--{}--{}", repository.substr(0, slash), repository.substr(slash + 1));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw io::system_error("cannot be made", error.value()).in(folder.string());
}

bool is_file(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_digest(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return (text.size() == 40 || text.size() == 64) && std::all_of(text.begin(), text.end(), is_digit);
}

// "../../blobs/ETAG" with one more "../" for each folder in the path.
std::string link_text(const Entry& entry) {
  std::string text = "../../";
  for (const char c : entry.path)
    if (c == '/') text += "../";
  return text + "blobs/" + entry.digest();
}

}  // namespace

void write_small_file(const std::string& path, std::string_view text) {
  make_folder(fs::path(path).parent_path());
  const std::string temporary = fmt::format("{}.{:08x}.tmp", path, std::random_device{}());
  {
    const io::UniqueFd file(
        io::retry([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
    if (file.get() < 0) throw io::system_error("cannot be written", errno).in(path);
    const int failed = io::write_all_at(file.get(), 0, std::as_bytes(std::span(text)));
    if (failed != 0) {
      unlink(temporary.c_str());
      throw io::system_error("cannot be written", failed).in(path);
    }
  }
  if (rename(temporary.c_str(), path.c_str()) == 0) return;
  const int failed = errno;
  unlink(temporary.c_str());
  throw io::system_error("cannot be written", failed).in(path);
}

std::optional<std::string> read_small_file(const std::string& path) {
  if (!is_file(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() < 0 || static_cast<std::uint64_t>(file.tellg()) > kMostSmallBytes) return std::nullopt;
  std::string text(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file ? std::optional(std::move(text)) : std::nullopt;
}

HubCache::HubCache(const Settings& settings, const std::string& repository)
    : root_(settings.cache),
      name_(folder_name(repository)),
      folder_(root_ + "/" + name_),
      makes_links_(settings.makes_links) {}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  auto text = read_small_file(folder_ + "/refs/" + revision);
  if (!text) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r' || text->back() == ' ')) text->pop_back();
  return is_commit(*text) ? text : std::nullopt;
}

std::optional<std::string> HubCache::find(const std::string& commit, const std::string& path) const {
  const std::string file = snapshot(commit) + "/" + path;
  return is_file(file) ? std::optional(file) : std::nullopt;
}

std::optional<std::string> HubCache::find(const std::string& commit, const Entry& entry) const {
  auto file = find(commit, entry.path);
  struct stat info = {};
  const bool has_size =
      file && stat(file->c_str(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) == entry.size;
  return has_size ? file : std::nullopt;
}

std::optional<std::string> HubCache::find_blob(const std::string& digest, std::uint64_t size) const {
  struct stat info = {};
  if (!is_digest(digest) || stat(blob(digest).c_str(), &info) != 0) return std::nullopt;
  const bool is_whole = S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) == size;
  return is_whole ? std::optional(blob(digest)) : std::nullopt;
}

std::optional<std::vector<Entry>> HubCache::whole_snapshot(const std::string& commit) const try {
  const auto text = read_small_file(tree_path(commit));
  if (!text) return std::nullopt;
  const Json tree = Json::parse(*text);
  std::vector<Entry> entries;
  for (const auto& [path, facts] : tree.at("files").members()) {
    const Json* sha256 = facts.find("lfs_sha256");
    entries.push_back({path, facts.at("size").count(), facts.at("blob_id").text(), sha256 ? sha256->text() : ""});
    if (!is_inner_path(path) || !find(commit, entries.back())) return std::nullopt;
  }
  return entries;
} catch (const Error&) {  // the tree is of another program, or damaged: then the Hub is asked
  return std::nullopt;
}

bool HubCache::is_known_missing(const std::string& commit, const std::string& path) const {
  return is_file(folder_ + "/.no_exist/" + commit + "/" + path);
}

std::optional<std::vector<std::string>> HubCache::list(const std::string& commit, const std::string& path) const {
  const std::string folder = path.empty() ? snapshot(commit) : snapshot(commit) + "/" + path;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const bool leads_somewhere = fs::exists(at->path(), error);
    if (leads_somewhere) names.push_back(at->path().filename().string());
    error.clear();
  }
  return names;
}

std::string HubCache::lock_path(const std::string& digest) const {
  return fmt::format("{}/.locks/{}/{}.lock", root_, name_, digest);
}

void HubCache::make_folders() const {
  make_folder(folder_ + "/blobs");
  make_folder(folder_ + "/refs");
  make_folder(folder_ + "/snapshots");
  make_folder(root_ + "/.locks/" + name_);
  if (const std::string tag = root_ + "/CACHEDIR.TAG"; !is_file(tag)) write_small_file(tag, kTag);
}

void HubCache::set_ref(const std::string& revision, const std::string& commit) const {
  if (is_commit(revision) || read_small_file(folder_ + "/refs/" + revision) == commit) return;
  write_small_file(folder_ + "/refs/" + revision, commit);
}

void HubCache::add_link(const std::string& commit, const Entry& entry) const {
  const fs::path at = fs::path(snapshot(commit)) / entry.path;
  if (find(commit, entry)) return;
  if (!find_blob(entry.digest(), entry.size)) throw Error(Errc::not_found, "is gone").in(blob(entry.digest()));
  make_folder(at.parent_path());
  // Whoever looks meanwhile sees what was there before, or all of what is there then.
  const std::string temporary = fmt::format("{}.{:08x}.tmp", at.string(), std::random_device{}());
  std::error_code error;
  if (makes_links_)
    fs::create_symlink(link_text(entry), temporary, error);
  else
    fs::copy_file(blob(entry.digest()), temporary, error);
  if (!error) fs::rename(temporary, at, error);
  if (!error) return;
  const int failed = error.value();
  fs::remove(temporary, error);
  throw io::system_error("cannot be made", failed).in(at.string());
}

void HubCache::mark_missing(const std::string& commit, const std::string& path) const {
  write_small_file(folder_ + "/.no_exist/" + commit + "/" + path, "");
}

void HubCache::write_tree(const std::string& commit, const std::vector<Entry>& entries) const {
  Json::Members files;
  for (const Entry& entry : entries) {
    Json::Members facts{{"size", entry.size}, {"blob_id", entry.blob_id}};
    if (!entry.lfs_sha256.empty()) {
      facts.emplace_back("lfs_sha256", entry.lfs_sha256);
      facts.emplace_back("lfs_size", entry.size);
    }
    files.emplace_back(entry.path, Json(std::move(facts)));
  }
  const Json tree(Json::Members{{"format_version", 1}, {"files", Json(std::move(files))}});
  write_small_file(tree_path(commit), to_string(tree));
}

}  // namespace ballast::hub
