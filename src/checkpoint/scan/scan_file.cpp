#include "checkpoint/scan/scan_file.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/read_source.hpp"
#include "checkpoint/recognize/detect.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "checkpoint/scan/scan_text.hpp"
#include "formats/all.hpp"
#include "formats/archive/unpack.hpp"
#include "formats/archive/zip.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/pickle/scan.hpp"
#include "formats/torch/scan.hpp"
#include "formats/torch/zip_names.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;       // bytes of a configuration or a template
constexpr std::uint64_t kMostUnpacked = std::uint64_t{256} << 20;  // bytes of a packed stream, which is held in memory

class FileScanner final : public Scanner {
 public:
  FileScanner(const ScanOptions& options, ScanFor purpose)
      : options_(options), purpose_(purpose), inflated_left_(options.limits.max_inflated_bytes) {}

  FileScan run(const SourcePtr& source) {
    scan_file({source, "", 0});
    return std::move(scan_);
  }

  const Limits& limits() const override { return options_.limits; }

  void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what) override {
    find(where, offset, what, Verdict::unknown);
  }

  // The recursion is as deep as Limits::max_archive_depth allows for archives inside each other.
  // NOLINTBEGIN(misc-no-recursion)
  void scan_file(const ScannedPart& part) override { scan_file(part, /*is_loaded=*/false); }

  void scan_pickles(const ScannedPart& part, std::uint64_t first, std::uint64_t last) override {
    take(part, look_for_pickles(part, first, last));
  }

  bool scan_on_the_chance(const ScannedPart& part, std::uint64_t first) override {
    pickle::Scan scan = look_for_pickles(part, first, part.source->size_bytes());
    if (!scan.is_surely_a_pickle()) return false;
    take(part, std::move(scan));
    return true;
  }

  // A file that begins with a length or a name can be written so that it is also a pickle, for programs that load it as
  // one.
  void scan_as_pickle_too(const ScannedPart& part) override {
    pickle::Scan scan = look_for_pickles(part, 0, part.source->size_bytes());
    if (!scan.is_telling()) return;
    find(part.source->name(), 0, "the file can be read as a pickle, too");
    take(part, std::move(scan));
  }

 private:
  // An error here becomes a finding, and the rest is still scanned.
  void scan_file(const ScannedPart& part, bool is_loaded) {
    const SourcePtr& source = part.source;
    if (part.depth > options_.limits.max_archive_depth)
      return find(source->name(), std::nullopt, "archives lie inside each other too deep: not looked into");
    const bool is_target = part.depth == 0 && purpose_ == ScanFor::target;
    if (source->size_bytes() == 0 && !is_target) return;  // an empty file holds nothing
    try {
      scan_content({with_beginning(source), part.member, part.depth}, is_loaded);
    } catch (const Error& error) {
      const bool is_no_answer = error.code() == Errc::io || error.code() == Errc::unsupported;
      if (part.depth == 0 && is_no_answer && (purpose_ == ScanFor::folder || !has_found_anything())) throw;
      find(error.where().empty() ? source->name() : error.where(), error.offset(), error.message());
    }
  }

  // Scans for every format that some program would see in the bytes. More than one is a finding, and each is scanned.
  void scan_content(const ScannedPart& part, bool is_loaded) {
    const auto readings = readings_of(*part.source);
    if (readings.empty() && is_loaded) return torch::scan_stream(part, *this);
    if (readings.empty()) return scan_unknown(part);
    const bool is_zip_without_beginning = readings.size() == 1 && readings.front().offset != 0;
    if (readings.size() > 1 || is_zip_without_beginning)
      find(part.source->name(), readings.back().offset, "the file " + text_of(readings));
    for (const Reading& reading : readings) scan_as(*reading.format, part);
    // Finds what the reader of the format would refuse. A file with two meanings is refused before it is read.
    if (readings.size() == 1 && has_no_pickles(*readings.front().format)) read_weights(part.source);
  }

  static bool has_no_pickles(const FileFormat& format) { return format.scan == nullptr && &format != &kZipArchive; }

  void scan_as(const FileFormat& format, const ScannedPart& part) {
    if (&format == &kZipArchive) return scan_zip(part);
    if (format.scan != nullptr) return format.scan(part, *this);
    scan_as_pickle_too(part);
  }

  void read_weights(const SourcePtr& source) {
    if (purpose_ == ScanFor::danger) return;
    const Checkpoint checkpoint = read_source(source, options_);
    for (const MetadataEntry& field : checkpoint.typed_metadata) {
      const auto text = field.as_string();
      if (text && field.key.starts_with("tokenizer.chat_template")) take(source, look_into_template(*text, field.key));
    }
  }

  void scan_zip(const ScannedPart& part) {
    const std::string& name = part.source->name();
    const archive::Zip zip = open_zip(part.source);
    for (const archive::ZipFinding& finding : zip.findings) find(name, finding.offset, finding.what);
    for (const archive::ZipFinding& finding : torch::find_names_by_case(zip)) find(name, finding.offset, finding.what);
    // Members that a checkpoint's pickle names as storages are numbers, whatever they look like.
    const FileFormat& format = format_in(zip);
    std::unordered_set<const archive::ZipMember*> numbers;
    if (format.numbers_in != nullptr) numbers = format.numbers_in(zip, options_.limits);
    for (const archive::ZipMember& inner : zip.members) {
      if (inner.bytes == 0 || numbers.contains(&inner)) continue;
      try {
        scan_file({archive::member_source(zip, inner, options_.limits),
                   part.member.empty() ? inner.name : part.member + "/" + inner.name, part.depth + 1});
      } catch (const Error& error) {
        find(name + "!/" + inner.name, error.offset(), error.message());
      }
    }
  }

  // All that one file inflates to is counted together, however many archives lie inside each other.
  archive::Zip open_zip(const SourcePtr& source) {
    Limits limits = options_.limits;
    limits.max_inflated_bytes = inflated_left_;
    archive::Zip zip = archive::read_zip(source, limits, archive::ZipReading::lenient);
    for (const archive::ZipMember& inner : zip.members) {
      if (inner.method == archive::kDeflated) inflated_left_ -= std::min(inflated_left_, inner.bytes);
    }
    return zip;
  }

  // The file has no magic, or a foreign one. It may be a pickle of protocol 0, which has no magic.
  void scan_unknown(const ScannedPart& part) {
    const SourcePtr& source = part.source;
    const bool is_target = part.depth == 0 && purpose_ == ScanFor::target;
    const std::uint64_t size = source->size_bytes();
    if (size != 0 && scan_packed(part)) return;
    if (size != 0 && scan_text(source, is_target)) return;
    // A target that is something else altogether, such as a pointer, is an error: see recognize().
    const bool is_strict = part.depth != 0 || (is_target && !is_hdf5(*source));
    if (const auto closed = find_closed_content(*source, is_strict ? Within::archive : Within::folder)) {
      if (is_hdf5(*source) && has_lambda(*source))
        find(source->name(), std::nullopt, "a Lambda layer, whose Python code runs when the model is loaded",
             Verdict::dangerous);
      return find(source->name(), std::nullopt, "this is " + *closed + ": not looked into");
    }
    if ((size != 0 && scan_on_the_chance(part, 0)) || !is_target) return;
    static_cast<void>(read_source(source, options_));  // throws an error that says what the file is
  }

  // Returns whether it was a packed stream. The unpacked bytes are scanned like any other file.
  bool scan_packed(const ScannedPart& part) {
    const SourcePtr& source = part.source;
    const auto packing = archive::packing_of(beginning_of(*source));
    if (!packing) return false;
    const std::uint64_t most = std::min(inflated_left_, kMostUnpacked);
    archive::Unpacked unpacked = archive::unpack(*source, *packing, most);
    const std::string what = fmt::format("this is a {} file", archive::name(*packing));
    if (unpacked.end == archive::Unpacked::End::broken) {
      if (*packing == archive::Packing::zlib) return false;  // numbers that look like the beginning of one
      find(source->name(), std::nullopt, what + " that breaks off or goes on behind its end: not looked into");
      return true;
    }
    if (unpacked.end == archive::Unpacked::End::too_large) {
      find(source->name(), std::nullopt,
           fmt::format("{} that unpacks to more than {} bytes, a bomb perhaps: not looked into", what, most));
      return true;
    }
    inflated_left_ -= unpacked.bytes.size();
    scan_file({memory_source(std::move(unpacked.bytes), source->name()), part.member, part.depth + 1});
    return true;
  }

  // Returns whether it was text that a loader acts on, recognized by its name: loaders find such files only by name.
  bool scan_text(const SourcePtr& source, bool is_target) {
    const std::string_view name = source->name();
    const bool is_template = name.ends_with(".jinja");
    const bool is_json = !is_template && (name.ends_with(".json") || (is_target && begins_like_json(*source)));
    const bool is_script = name.ends_with(".py") && name.find("/code/") != std::string_view::npos && !is_target;
    if (!is_json && !is_template && !is_script) return false;
    if (source->size_bytes() > kMostText) {
      find(std::string(name), std::nullopt, "text of this size is not looked into");
      return true;
    }
    std::string text(static_cast<std::size_t>(source->size_bytes()), '\0');
    source->read(0, std::as_writable_bytes(std::span(text)));
    take(source, is_json     ? look_into_json(text)
                 : is_script ? look_into_script(text)
                             : look_into_template(text, "the template"));
    // An index of shards is only data; other JSON is not a checkpoint, which recognize() says.
    if (is_target && scan_.findings.empty() && recognize(source, options_.limits).is_json()) check_index(*source, text);
    return true;
  }

  void check_index(const Source& source, std::string_view text) const try {
    static_cast<void>(parse_shard_index(text, options_.limits));
  } catch (Error& error) {
    throw error.in(source.name());
  }

  static std::string beginning_of(const Source& source) {
    constexpr std::uint64_t kBeginningBytes = 16;
    std::string first(static_cast<std::size_t>(std::min(kBeginningBytes, source.size_bytes())), '\0');
    source.read(0, std::as_writable_bytes(std::span(first)));
    return first;
  }

  static bool begins_like_json(const Source& source) {
    const std::string first = beginning_of(source);
    const auto letter = first.find_first_not_of(" \t\r\n");
    return letter != std::string::npos && first[letter] == '{';
  }

  static bool is_hdf5(const Source& source) { return beginning_of(source).starts_with("\x89HDF"); }

  // The description of a model lies in its first megabytes, at most between the weights of its layers.
  static bool has_lambda(const Source& source) {
    std::string text(static_cast<std::size_t>(std::min(kMostText, source.size_bytes())), '\0');
    source.read(0, std::as_writable_bytes(std::span(text)));
    return has_lambda_layer(text);
  }

  pickle::Scan look_for_pickles(const ScannedPart& part, std::uint64_t first, std::uint64_t last) const {
    pickle::Scan scan;
    scan.trusted = options_.trusted;
    pickle::scan_pickles(part.source, first, last, part.member, options_.limits, scan, begins_like_a_container);
    return scan;
  }

  void take(const ScannedPart& part, pickle::Scan scan) {
    ++scan_.pickles;
    for (pickle::JudgedGlobal& global : scan.globals)
      scan_.globals.push_back({static_cast<Global&&>(global), global.rule, global.use, {}});
    for (const pickle::ScanFinding& finding : scan.findings)
      find(part.source->name(), finding.offset, finding.what, finding.verdict);
    for (const pickle::HiddenFile& file : scan.files)
      scan_file({file.source, file.member, part.depth + file.depth}, file.is_loaded);
  }
  // NOLINTEND(misc-no-recursion)

  void take(const SourcePtr& source, const std::vector<TextFinding>& findings) {
    for (const TextFinding& finding : findings) find(source->name(), std::nullopt, finding.what, finding.verdict);
  }

  bool has_found_anything() const { return scan_.pickles != 0 || !scan_.findings.empty(); }

  void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what, Verdict verdict) {
    scan_.findings.push_back({where, offset, what, verdict, {}});
  }

  const ScanOptions& options_;
  const ScanFor purpose_;
  FileScan scan_;
  std::uint64_t inflated_left_;  // what is left of Limits::max_inflated_bytes
};

}  // namespace

Verdict FileScan::weakest() const noexcept {
  Verdict weakest = findings.empty() ? Verdict::known : Verdict::unknown;
  for (const Global& global : globals) weakest = std::max(weakest, global.verdict);
  for (const ScanFinding& finding : findings) weakest = std::max(weakest, finding.verdict);
  return weakest;
}

FileScan scan_file(const SourcePtr& source, const ScanOptions& options, ScanFor purpose) {
  return FileScanner(options, purpose).run(source);
}

}  // namespace ballast
