#include <ballast/error.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "checkpoint/detect.hpp"
#include "checkpoint/read_source.hpp"
#include "formats/archive/tar.hpp"
#include "formats/archive/zip.hpp"
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
    scan_source(source, "", 0);
  }

  ScanReport finish() { return std::move(report_); }

 private:
  // What goes wrong here is a finding, and the rest is looked at all the same. The recursion is as deep as
  // Limits::max_archive_depth lets archives lie in each other. NOLINTBEGIN(misc-no-recursion)
  void scan_source(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    if (depth > options_.limits.max_archive_depth) {
      return find(source->name(), std::nullopt, "archives lie inside each other too deep: not looked into");
    }
    if (source->size_bytes() == 0) return;
    try {
      scan_content(source, member, depth);
    } catch (const Error& error) {
      if (depth == 0 && (error.code() == Errc::io || error.code() == Errc::unsupported)) throw;
      find(error.where().empty() ? source->name() : error.where(), error.offset(), error.message());
    }
  }

  void scan_content(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const auto content = detect_quietly(*source);
    if (content != Content::zip && ends_as_zip(*source)) {
      find(source->name(), source->size_bytes() - 22, "the file ends as a zip archive, but does not begin as one");
      scan_zip(source, member, depth);
    }
    if (!content) return scan_unknown(source, member, depth);
    switch (*content) {
      case Content::zip: return scan_zip(source, member, depth);
      case Content::tar: return scan_tar(source, member, depth);
      case Content::npy: return scan_npy(source, member);
      case Content::pickle: return scan_stream(source, member);
      case Content::safetensors:
      case Content::gguf: static_cast<void>(read_source(source, options_)); return;
      case Content::json: return;
    }
  }

  void scan_zip(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const archive::Zip zip = archive::read_zip(source, options_.limits, archive::ZipReading::lenient);
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

  void scan_tar(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const archive::Tar tar = archive::read_tar(source, options_.limits);
    const auto under = [&](const std::string& name) { return member.empty() ? name : member + "/" + name; };
    // In those of a checkpoint, pickles and numbers take turns.
    const auto pickles = torch::find_tar_pickles(tar, options_.limits);
    for (const torch::TarPickle& part : pickles) {
      scan_pickles(archive::member_source(tar, *tar.find(part.member)), part.first, part.last, under(part.member));
    }
    for (const archive::TarMember& inner : tar.members) {
      const auto is_done = [&](const torch::TarPickle& part) { return part.member == inner.name; };
      if (std::any_of(pickles.begin(), pickles.end(), is_done)) continue;
      scan_source(archive::member_source(tar, inner), under(inner.name), depth + 1);
    }
  }
  // NOLINTEND(misc-no-recursion)

  void scan_npy(const io::ByteSourcePtr& source, const std::string& member) {
    const npy::Header header = npy::read_header(*source, options_.limits);
    if (header.type.is_object()) scan_pickles(source, header.data_offset, source->size_bytes(), member);
  }

  // In a whole legacy stream the storages are known, and nothing in them is a pickle.
  void scan_stream(const io::ByteSourcePtr& source, const std::string& member) {
    const auto stream = torch::stream_extent(source, options_.limits);
    if (!stream) return scan_pickles(source, 0, source->size_bytes(), member);
    scan_pickles(source, 0, stream->pickles_end, member);
    if (stream->end == source->size_bytes()) return;
    find(source->name(), stream->end, "bytes follow the checkpoint");
    scan_pickles(source, stream->end, source->size_bytes(), member);
  }

  void scan_pickles(const io::ByteSourcePtr& source, std::uint64_t first, std::uint64_t last,
                    const std::string& member) {
    pickle::Scan scan;
    pickle::scan_pickles(source, first, last, member, options_.limits, scan);
    take(source, std::move(scan));
  }

  // It has no magic. It may be a pickle of protocol 0, which has none: then it runs to its end, or names something that
  // is worth naming. Numbers and texts name nonsense at most.
  void scan_unknown(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    if (depth == 0) {
      const Content content = detect(*source);  // says what it is where it is nothing for us
      if (content == Content::json) return;
    }
    pickle::Scan scan;
    pickle::scan_pickles(source, 0, source->size_bytes(), member, options_.limits, scan);
    const auto is_telling = [](const Global& global) { return global.verdict != Verdict::inert; };
    const bool is_pickle = scan.findings.empty() || std::any_of(scan.globals.begin(), scan.globals.end(), is_telling);
    if (is_pickle) return take(source, std::move(scan));
    if (depth == 0) static_cast<void>(read_source(source, options_));  // says what is wrong with it
  }

  void take(const io::ByteSourcePtr& source, pickle::Scan scan) {
    ++report_.pickles;
    std::move(scan.globals.begin(), scan.globals.end(), std::back_inserter(report_.globals));
    for (pickle::ScanFinding& finding : scan.findings) find(source->name(), finding.offset, finding.what);
  }

  void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what) {
    report_.findings.push_back({where, offset, what});
  }

  const OpenOptions& options_;
  ScanReport report_;
};

}  // namespace

bool ScanReport::is_safe() const noexcept {
  return std::none_of(globals.begin(), globals.end(),
                      [](const Global& global) { return global.verdict == Verdict::dangerous; });
}

ScanReport scan(const std::string& target, const OpenOptions& options) {
  Scanner scanner(options);
  std::error_code error;
  if (!fs::is_directory(target, error)) {
    scanner.scan_file(target);
    return scanner.finish();
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(target, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) scanner.scan_file(file);
  return scanner.finish();
}

}  // namespace ballast
