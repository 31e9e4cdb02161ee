#include <ballast/error.hpp>
#include <ballast/remote.hpp>
#include <ballast/scan.hpp>
#include <ballast/source.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "checkpoint/scan/scan_file.hpp"
#include "formats/pickle/judge.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

Safe safe_of(Verdict weakest) {
  if (weakest == Verdict::unknown) return std::nullopt;
  return weakest == Verdict::known;
}

class TargetScanner {
 public:
  explicit TargetScanner(const ScanOptions& options) : options_(options), given_(options) {}

  void add(const SourcePtr& source, ScanFor purpose) { take(source->name(), scan_file(source, options_, purpose)); }

  void add_target(const std::string& target) {
    options_.files = options_for(target, given_).files;
    if (options_.files == local_files() && is_folder(target)) return add_files(files_under(target));
    if (const auto names = options_.files->list(target)) return add_files(files_in(target, *names));
    add(options_.files->open(target), ScanFor::target);
  }

  // For one of several targets: if it fails, the others are still scanned.
  void add_one_of_many(const std::string& target) {
    try {
      add_target(target);
    } catch (const Error& error) {
      take_error(target, error);
    }
  }

  ScanReport finish() { return std::move(report_); }

 private:
  static bool is_folder(const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
  }

  // The files of a folder and of the folders in it, as list() gives them.
  std::vector<std::string> files_in(const std::string& folder, const std::vector<std::string>& names) const {
    constexpr std::size_t kMostFolders = 100'000;
    std::vector<std::string> files, left;
    const auto add = [&](const std::string& in, const std::vector<std::string>& found) {
      for (const std::string& name : found) left.push_back(options_.files->inside(in, name));
    };
    add(folder, names);
    for (std::size_t folders = 0; !left.empty();) {
      const std::string path = std::move(left.back());
      left.pop_back();
      const auto inner = options_.files->list(path);
      if (!inner)
        files.push_back(path);
      else if (++folders > kMostFolders)
        throw Error(Errc::limit, "the folder has too many folders in it").in(folder);
      else
        add(path, *inner);
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  void add_files(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      try {
        FileScan scan = scan_file(options_.files->open(path), options_, ScanFor::folder);
        if (is_code_of_model(path)) {
          scan.findings.push_back({path,
                                   std::nullopt,
                                   "Python code beside a configuration, which a loader may run: not looked into",
                                   Verdict::unknown,
                                   {}});
        }
        take(path, std::move(scan));
      } catch (const Error& error) {
        take_error(path, error);
      }
    }
  }

  // transformers runs the Python files beside a config.json if it is asked to.
  bool is_code_of_model(const std::string& path) const {
    return path.ends_with(".py") && options_.files->exists(options_.files->beside(path, "config.json"));
  }

  void take_error(const std::string& path, const Error& error) {
    FileScan scan;
    scan.findings.push_back({error.where().empty() ? path : error.where(),
                             error.offset(),
                             error.message() + ": not looked into",
                             Verdict::unknown,
                             {}});
    take(path, std::move(scan));
  }

  void take(const std::string& path, FileScan scan) {
    ScannedFile file{path, safe_of(scan.weakest()), scan.pickles, 0, 0, 0, scan.findings.size()};
    std::set<std::pair<std::string_view, std::string_view>> names[3];
    for (const Global& global : scan.globals)
      names[static_cast<std::size_t>(global.verdict)].emplace(global.module, global.name);
    file.known = names[0].size();
    file.unknown = names[1].size();
    file.dangerous = names[2].size();
    report_.files.push_back(std::move(file));
    for (ScannedGlobal& global : scan.globals) {
      global.file = path;
      report_.globals.push_back(std::move(global));
    }
    for (ScanFinding& finding : scan.findings) {
      finding.file = path;
      report_.findings.push_back(std::move(finding));
    }
  }

  // Files in order. Links to folders are not followed, so that the walk ends.
  std::vector<std::string> files_under(const std::string& root) {
    std::vector<std::string> files, folders{root};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      std::error_code error;
      for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
        std::error_code gone;  // a file that is gone, or a link that leads nowhere, is passed over
        const std::string path = i->path().string();
        if (i->is_regular_file(gone)) {
          files.push_back(path);
        } else if (i->is_directory(gone) && !i->is_symlink(gone)) {
          folders.push_back(path);
        } else if (i->is_directory(gone) && !lies_under(root, path)) {
          take_error(path, Error(Errc::io, "a link to a folder elsewhere"));
        }
      }
      if (!error) continue;
      const Error closed = Error(Errc::io, "cannot list the folder: " + error.message()).in(folder);
      if (folder == root) throw closed;
      take_error(folder, closed);
    }
    std::sort(files.begin(), files.end());
    drop_linked_blobs(files);
    return files;
  }

  // The Hub's cache keeps the files of its snapshots in another folder, under their digests, and links to them.
  static void drop_linked_blobs(std::vector<std::string>& files) {
    const auto is_blob = [](const std::string& path) { return fs::path(path).parent_path().filename() == "blobs"; };
    if (std::ranges::none_of(files, is_blob)) return;
    std::error_code error;
    std::set<fs::path> linked;
    for (const std::string& path : files) {
      if (fs::is_symlink(path, error)) linked.insert(fs::canonical(path, error));
    }
    std::erase_if(files, [&](const std::string& path) {
      return is_blob(path) && !fs::is_symlink(path, error) && linked.contains(fs::canonical(path, error));
    });
  }

  static bool lies_under(const std::string& root, const std::string& link) {
    std::error_code error;
    const fs::path whole = fs::canonical(root, error), real = fs::canonical(link, error);
    return !error && std::mismatch(whole.begin(), whole.end(), real.begin(), real.end()).first == whole.end();
  }

  ScanOptions options_;
  OpenOptions given_;  // options_.files are those of the target that is looked at
  ScanReport report_;
};

std::string uses_text(const pickle::Allowed& row) {
  std::string text;
  const auto add = [&](std::uint8_t bit, pickle::Use use) {
    if ((row.uses & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(pickle::name(use));
  };
  add(pickle::kCalled, pickle::Use::called);
  add(pickle::kBuilt, pickle::Use::built);
  add(pickle::kState, pickle::Use::given_state);
  add(pickle::kItems, pickle::Use::given_items);
  add(pickle::kPairs, pickle::Use::given_pairs);
  return text.empty() ? "named" : text;
}

AllowedUse allowed_use(const pickle::Allowed& row) {
  return {std::string(row.path), uses_text(row), std::string(pickle::text(row.given)), std::string(row.why)};
}

}  // namespace

Safe ScanReport::safe() const noexcept {
  const auto rank = [](const ScannedFile& file) { return file.safe == true ? 0 : file.safe == false ? 2 : 1; };
  const auto weakest = std::ranges::max_element(files, {}, rank);
  return weakest == files.end() ? Safe(true) : weakest->safe;
}

ScanReport scan(const std::string& target, const ScanOptions& options) {
  TargetScanner scanner(options);
  scanner.add_target(target);
  return scanner.finish();
}

ScanReport scan_all(const std::vector<std::string>& targets, const ScanOptions& options) {
  TargetScanner scanner(options);
  for (const std::string& target : targets) scanner.add_one_of_many(target);
  return scanner.finish();
}

ScanReport scan_bytes(std::vector<std::byte> bytes, const std::string& name, const ScanOptions& options) {
  TargetScanner scanner(options);
  scanner.add(memory_source(std::move(bytes), name), ScanFor::target);
  return scanner.finish();
}

std::vector<AllowedUse> scan_allowlist() {
  std::vector<AllowedUse> rows;
  for (const pickle::Allowed& row : pickle::kAllowlist) rows.push_back(allowed_use(row));
  for (const pickle::Family& family : pickle::kFamilies) rows.push_back(allowed_use(family.row));
  rows.push_back(allowed_use(pickle::kDType));
  rows.push_back(allowed_use(pickle::kElementClass));
  return rows;
}

}  // namespace ballast
