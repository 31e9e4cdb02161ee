#include <ballast/error.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/detect.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/shard_index.hpp"
#include "core/name_hash.hpp"
#include "formats/archive/tar.hpp"
#include "formats/archive/zip.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/npy/reader.hpp"
#include "formats/pickle/scan.hpp"
#include "formats/torch/read.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

class Scanner {
 public:
  explicit Scanner(const OpenOptions& options) : options_(options) {}

  void scan_file(const std::string& path) {
    const auto source = io::open_file(path);
    ++report_.files;
    inflated_left_ = options_.limits.max_inflated_bytes;
    scan_source(source, "", 0);
  }

  void scan_folder(const std::string& folder) {
    is_folder_ = true;
    for (const std::string& path : files_under(folder)) {
      file_ = path;
      try {
        scan_file(path);
      } catch (const Error& error) {
        find(error.where().empty() ? path : error.where(), error.offset(), error.message() + ": not looked into");
      }
    }
  }

  ScanReport finish() { return std::move(report_); }

 private:
  // In order. Links to folders are not followed, so that there is an end to it.
  std::vector<std::string> files_under(const std::string& root) {
    std::vector<std::string> files, folders{root};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      std::error_code error;
      for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
        std::error_code gone;  // what is no longer there, or leads nowhere, is nothing to look at
        const std::string path = i->path().string();
        if (i->is_regular_file(gone)) {
          files.push_back(path);
        } else if (i->is_directory(gone) && !i->is_symlink(gone)) {
          folders.push_back(path);
        } else if (i->is_directory(gone) && !lies_under(root, path)) {
          find(path, std::nullopt, "a link to a folder elsewhere: not looked into");
        }
      }
      if (!error) continue;
      if (folder == root) throw Error(Errc::io, "cannot list the folder: " + error.message()).in(folder);
      find(folder, std::nullopt, "cannot list the folder: " + error.message());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  static bool lies_under(const std::string& root, const std::string& link) {
    std::error_code error;
    const fs::path whole = fs::canonical(root, error), real = fs::canonical(link, error);
    return !error && std::mismatch(whole.begin(), whole.end(), real.begin(), real.end()).first == whole.end();
  }

  // What goes wrong here is a finding, and the rest is looked at all the same. The recursion is as deep as
  // Limits::max_archive_depth lets archives lie in each other. NOLINTBEGIN(misc-no-recursion)
  void scan_source(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    if (depth > options_.limits.max_archive_depth) {
      return find(source->name(), std::nullopt, "archives lie inside each other too deep: not looked into");
    }
    if (source->size_bytes() == 0 && (depth != 0 || is_folder_)) return;  // of a folder: nothing can be in it
    try {
      scan_content(source, member, depth);
    } catch (const Error& error) {
      const bool is_no_answer = error.code() == Errc::io || error.code() == Errc::unsupported;
      if (depth == 0 && is_no_answer && (is_folder_ || !has_found_anything())) throw;
      find(error.where().empty() ? source->name() : error.where(), error.offset(), error.message());
    }
  }

  void scan_content(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const auto readings = readings_of(*source);
    if (readings.empty()) return scan_unknown(source, member, depth);
    const bool is_zip_without_beginning = readings.size() == 1 && readings.front().offset != 0;
    if (readings.size() > 1 || is_zip_without_beginning)
      find(source->name(), readings.back().offset, "the file " + text_of(readings));
    for (const Reading& reading : readings) scan_as(reading.content, source, member, depth);
    // What the reader of the format finds wrong; it refuses two meanings before it looks.
    if (readings.size() == 1 && has_no_pickles(readings.front().content))
      static_cast<void>(read_source(source, options_));
  }

  static bool has_no_pickles(Content content) { return content == Content::safetensors || content == Content::gguf; }

  void scan_as(Content content, const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    switch (content) {
      case Content::zip: return scan_zip(source, member, depth);
      case Content::tar: scan_as_pickle_too(source, member, depth); return scan_tar(source, member, depth);
      case Content::npy: return scan_npy(source, member, depth);
      case Content::pickle: return scan_stream(source, member, depth);
      case Content::safetensors:
      case Content::gguf: return scan_as_pickle_too(source, member, depth);
      case Content::json: return;
    }
  }

  void scan_zip(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const archive::Zip zip = open_zip(source);
    for (const archive::ZipFinding& finding : zip.findings) find(source->name(), finding.offset, finding.what);
    for (const archive::ZipMember& inner : zip.members) {
      if (inner.is_folder() || inner.bytes == 0) continue;
      const std::string name = member.empty() ? inner.name : member + "/" + inner.name;
      try {
        scan_source(archive::member_source(zip, inner, options_.limits), name, depth + 1);
      } catch (const Error& error) {
        find(source->name() + "!/" + inner.name, error.offset(), error.message());
      }
    }
  }

  // What one file inflates to is counted together, however many archives lie in each other in it.
  archive::Zip open_zip(const io::ByteSourcePtr& source) {
    Limits limits = options_.limits;
    limits.max_inflated_bytes = inflated_left_;
    archive::Zip zip = archive::read_zip(source, limits, archive::ZipReading::lenient);
    for (const archive::ZipMember& inner : zip.members) {
      if (inner.method == archive::kDeflated) inflated_left_ -= std::min(inflated_left_, inner.bytes);
    }
    return zip;
  }

  void scan_tar(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const archive::Tar tar = archive::read_tar(source, options_.limits);
    const auto under = [&](const std::string& name) { return member.empty() ? name : member + "/" + name; };
    NameViewMap<const archive::TarMember*> members;
    for (const archive::TarMember& inner : tar.members) members.try_emplace(inner.name, &inner);
    // In those of a checkpoint, pickles and numbers take turns.
    std::unordered_set<const archive::TarMember*> done;
    for (const torch::TarPickle& part : torch::find_tar_pickles(tar, options_.limits)) {
      const archive::TarMember& inner = *members.at(part.member);
      done.insert(&inner);
      scan_pickles(archive::member_source(tar, inner), part.first, part.last, under(part.member), depth + 1);
    }
    for (const archive::TarMember& inner : tar.members) {
      if (!done.contains(&inner)) scan_source(archive::member_source(tar, inner), under(inner.name), depth + 1);
    }
  }

  // NumPy knows many words for objects ("object", "i4,O"), and runs the pickle behind the header for each of them.
  void scan_npy(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const npy::Header header = npy::read_header(*source, options_.limits);
    if (header.type.is_object()) {
      scan_pickles(source, header.data_offset, source->size_bytes(), member, depth);
    } else if (!header.type.dtype) {
      scan_on_the_chance(source, header.data_offset, member, depth);
    }
  }

  // In a whole legacy stream the storages are known, and nothing in them is a pickle.
  void scan_stream(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const auto stream = torch::stream_extent(source, options_.limits);
    if (!stream) return scan_pickles(source, 0, source->size_bytes(), member, depth);
    scan_pickles(source, 0, stream->pickles_end, member, depth);
    if (stream->end == source->size_bytes()) return;
    find(source->name(), stream->end, "bytes follow the checkpoint");
    scan_pickles(source, stream->end, source->size_bytes(), member, depth);
  }

  void scan_pickles(const io::ByteSourcePtr& source, std::uint64_t first, std::uint64_t last, const std::string& member,
                    std::uint64_t depth) {
    take(source, look_for_pickles(source, first, last, member), depth);
  }

  // It has no magic. It may be a pickle of protocol 0, which has none.
  void scan_unknown(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const bool is_target = depth == 0 && !is_folder_;
    const auto closed = find_closed_content(*source, depth == 0 ? Within::folder : Within::archive);
    if (closed && !is_target) find(source->name(), std::nullopt, "this is " + *closed + ": not looked into");
    const bool is_empty = source->size_bytes() == 0;
    if ((!is_empty && scan_on_the_chance(source, 0, member, depth)) || !is_target) return;
    // Whatever it is, detect() or its reader says so. An index of shards is data, and there is no more to it.
    if (detect(*source) == Content::json)
      static_cast<void>(
          parse_shard_index(io::read_text_file(source->name(), options_.limits.max_index_bytes), options_.limits));
    else
      static_cast<void>(read_source(source, options_));
  }

  // Whether it was a pickle.
  bool scan_on_the_chance(const io::ByteSourcePtr& source, std::uint64_t first, const std::string& member,
                          std::uint64_t depth) {
    pickle::Scan scan = look_for_pickles(source, first, source->size_bytes(), member);
    if (!scan.is_surely_a_pickle()) return false;
    take(source, std::move(scan), depth);
    return true;
  }

  // What begins with a length or a name can be written so that it is a pickle as well, for whoever loads it as one.
  void scan_as_pickle_too(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    pickle::Scan scan = look_for_pickles(source, 0, source->size_bytes(), member);
    if (!scan.is_telling()) return;
    find(source->name(), 0, "the file can be read as a pickle, too");
    take(source, std::move(scan), depth);
  }

  pickle::Scan look_for_pickles(const io::ByteSourcePtr& source, std::uint64_t first, std::uint64_t last,
                                const std::string& member) const {
    pickle::Scan scan;
    pickle::scan_pickles(source, first, last, member, options_.limits, scan, begins_like_a_container);
    return scan;
  }

  void take(const io::ByteSourcePtr& source, pickle::Scan scan, std::uint64_t depth) {
    ++report_.pickles;
    for (Global& global : scan.globals) report_.globals.push_back({std::move(global), file_});
    for (pickle::ScanFinding& finding : scan.findings) find(source->name(), finding.offset, finding.what);
    for (const pickle::HiddenFile& file : scan.files) scan_source(file.source, file.member, depth + file.depth);
  }
  // NOLINTEND(misc-no-recursion)

  bool has_found_anything() const { return report_.pickles != 0 || !report_.findings.empty(); }

  void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what) {
    report_.findings.push_back({where, offset, what});
  }

  const OpenOptions& options_;
  ScanReport report_;
  bool is_folder_ = false;
  std::string file_;                 // of a folder
  std::uint64_t inflated_left_ = 0;  // of Limits::max_inflated_bytes
};

}  // namespace

bool ScanReport::is_safe() const noexcept {
  return std::none_of(globals.begin(), globals.end(),
                      [](const Global& global) { return global.verdict == Verdict::dangerous; });
}

ScanReport scan(const std::string& target, const OpenOptions& options) {
  Scanner scanner(options);
  std::error_code error;
  fs::is_directory(target, error) ? scanner.scan_folder(target) : scanner.scan_file(target);
  return scanner.finish();
}

}  // namespace ballast
