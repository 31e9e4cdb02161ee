#include "checkpoint/scan_file.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/detect.hpp"
#include "checkpoint/read_source.hpp"
#include "checkpoint/scan_text.hpp"
#include "checkpoint/shard_index.hpp"
#include "core/name_hash.hpp"
#include "formats/archive/tar.hpp"
#include "formats/archive/unpack.hpp"
#include "formats/archive/zip.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/npy/reader.hpp"
#include "formats/pickle/scan.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/zip_names.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;       // of a configuration or a template
constexpr std::uint64_t kMostUnpacked = std::uint64_t{256} << 20;  // of a packed stream, which is held in memory

class FileScanner {
 public:
  FileScanner(const ScanOptions& options, ScanFor purpose)
      : options_(options), purpose_(purpose), inflated_left_(options.limits.max_inflated_bytes) {}

  FileScan run(const io::ByteSourcePtr& source) {
    scan_source(source, "", 0);
    return std::move(scan_);
  }

 private:
  // What goes wrong here is a finding, and the rest is looked at all the same. The recursion is as deep as
  // Limits::max_archive_depth lets archives lie in each other. NOLINTBEGIN(misc-no-recursion)
  void scan_source(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth,
                   bool is_loaded = false) {
    if (depth > options_.limits.max_archive_depth)
      return find(source->name(), std::nullopt, "archives lie inside each other too deep: not looked into");
    if (source->size_bytes() == 0 && (depth != 0 || purpose_ != ScanFor::target)) return;  // nothing can be in it
    try {
      scan_content(source, member, depth, is_loaded);
    } catch (const Error& error) {
      const bool is_no_answer = error.code() == Errc::io || error.code() == Errc::unsupported;
      if (depth == 0 && is_no_answer && (purpose_ == ScanFor::folder || !has_found_anything())) throw;
      find(error.where().empty() ? source->name() : error.where(), error.offset(), error.message());
    }
  }

  // Everything that some program would read in the bytes. More than one is a finding, and each of them is looked at.
  void scan_content(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth, bool is_loaded) {
    const auto readings = readings_of(*source);
    if (readings.empty() && is_loaded) return scan_stream(source, member, depth);
    if (readings.empty()) return scan_unknown(source, member, depth);
    const bool is_zip_without_beginning = readings.size() == 1 && readings.front().offset != 0;
    if (readings.size() > 1 || is_zip_without_beginning)
      find(source->name(), readings.back().offset, "the file " + text_of(readings));
    for (const Reading& reading : readings) scan_as(reading.content, source, member, depth);
    // What the reader of the format finds wrong; it refuses two meanings before it looks.
    if (readings.size() == 1 && has_no_pickles(readings.front().content)) read_weights(source);
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

  void read_weights(const io::ByteSourcePtr& source) {
    if (purpose_ == ScanFor::danger) return;
    const Checkpoint checkpoint = read_source(source, options_);
    for (const Field& field : checkpoint.fields) {
      const auto text = field.as_string();
      if (text && field.key.starts_with("tokenizer.chat_template")) take(source, look_into_template(*text, field.key));
    }
  }

  void scan_zip(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const archive::Zip zip = open_zip(source);
    for (const archive::ZipFinding& finding : zip.findings) find(source->name(), finding.offset, finding.what);
    for (const archive::ZipFinding& finding : torch::find_names_by_case(zip))
      find(source->name(), finding.offset, finding.what);
    // What a checkpoint's pickle names as its storages is numbers, whatever they look like.
    const auto storages = torch::storage_members(zip, options_.limits);
    for (const archive::ZipMember& inner : zip.members) {
      if (inner.bytes == 0 || storages.contains(&inner)) continue;
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

  // It has no magic, or one of others. It may be a pickle of protocol 0, which has none.
  void scan_unknown(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const bool is_target = depth == 0 && purpose_ == ScanFor::target;
    const std::uint64_t size = source->size_bytes();
    if (size != 0 && scan_packed(source, member, depth)) return;
    if (size != 0 && scan_text(source, is_target)) return;
    // A target that is something else altogether, such as a pointer, is an error: see detect().
    const bool is_strict = depth != 0 || (is_target && !is_hdf5(*source));
    if (const auto closed = find_closed_content(*source, is_strict ? Within::archive : Within::folder)) {
      if (is_hdf5(*source) && has_lambda(*source))
        find(source->name(), std::nullopt, "a Lambda layer, whose Python code runs when the model is loaded",
             Verdict::dangerous);
      return find(source->name(), std::nullopt, "this is " + *closed + ": not looked into");
    }
    if ((size != 0 && scan_on_the_chance(source, 0, member, depth)) || !is_target) return;
    static_cast<void>(detect(*source));                // whatever it is, this says so,
    static_cast<void>(read_source(source, options_));  // or its reader
  }

  // Whether it was a packed stream. What it unpacks to is looked at like any other file.
  bool scan_packed(const io::ByteSourcePtr& source, const std::string& member, std::uint64_t depth) {
    const auto packing = archive::packing_of(beginning_of(*source));
    if (!packing) return false;
    const std::uint64_t most = std::min(inflated_left_, kMostUnpacked);
    archive::Unpacked unpacked = archive::unpack(*source, *packing, most);
    const std::string what = fmt::format("this is a {} file", archive::name(*packing));
    if (unpacked.end == archive::Unpacked::End::broken) {
      if (*packing == archive::Packing::zlib) return false;  // numbers that began like one
      find(source->name(), std::nullopt, what + " that breaks off or goes on behind its end: not looked into");
      return true;
    }
    if (unpacked.end == archive::Unpacked::End::too_large) {
      find(source->name(), std::nullopt,
           fmt::format("{} that unpacks to more than {} bytes, a bomb perhaps: not looked into", what, most));
      return true;
    }
    inflated_left_ -= unpacked.bytes.size();
    const auto inside = io::from_memory(std::move(unpacked.bytes), source->name());
    scan_source(inside, member, depth + 1);
    return true;
  }

  // Whether it was text that a loader acts on, told by its name: nobody loads such a file by another one.
  bool scan_text(const io::ByteSourcePtr& source, bool is_target) {
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
    source->read_at(0, std::as_writable_bytes(std::span(text)));
    take(source, is_json     ? look_into_json(text)
                 : is_script ? look_into_script(text)
                             : look_into_template(text, "the template"));
    // An index of shards is data, and there is no more to it; other JSON is no checkpoint, which detect() says.
    if (is_target && scan_.findings.empty() && detect(*source) == Content::json)
      static_cast<void>(parse_shard_index(text, options_.limits));
    return true;
  }

  static std::string beginning_of(const io::ByteSource& source) {
    constexpr std::uint64_t kBeginningBytes = 16;
    std::string first(static_cast<std::size_t>(std::min(kBeginningBytes, source.size_bytes())), '\0');
    source.read_at(0, std::as_writable_bytes(std::span(first)));
    return first;
  }

  static bool begins_like_json(const io::ByteSource& source) {
    const std::string first = beginning_of(source);
    const auto letter = first.find_first_not_of(" \t\r\n");
    return letter != std::string::npos && first[letter] == '{';
  }

  static bool is_hdf5(const io::ByteSource& source) { return beginning_of(source).starts_with("\x89HDF"); }

  // The description of a model lies in its first megabytes, between the weights of its layers at most.
  static bool has_lambda(const io::ByteSource& source) {
    std::string text(static_cast<std::size_t>(std::min(kMostText, source.size_bytes())), '\0');
    source.read_at(0, std::as_writable_bytes(std::span(text)));
    return has_lambda_layer(text);
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
    scan.trusted = options_.trusted;
    pickle::scan_pickles(source, first, last, member, options_.limits, scan, begins_like_a_container);
    return scan;
  }

  void take(const io::ByteSourcePtr& source, pickle::Scan scan, std::uint64_t depth) {
    ++scan_.pickles;
    for (pickle::JudgedGlobal& global : scan.globals)
      scan_.globals.push_back({static_cast<Global&&>(global), global.rule, global.use, {}});
    for (const pickle::ScanFinding& finding : scan.findings)
      find(source->name(), finding.offset, finding.what, finding.verdict);
    for (const pickle::HiddenFile& file : scan.files)
      scan_source(file.source, file.member, depth + file.depth, file.is_loaded);
  }
  // NOLINTEND(misc-no-recursion)

  void take(const io::ByteSourcePtr& source, const std::vector<TextFinding>& findings) {
    for (const TextFinding& finding : findings) find(source->name(), std::nullopt, finding.what, finding.verdict);
  }

  bool has_found_anything() const { return scan_.pickles != 0 || !scan_.findings.empty(); }

  void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what,
            Verdict verdict = Verdict::inert) {
    scan_.findings.push_back({where, offset, what, verdict, {}});
  }

  const ScanOptions& options_;
  const ScanFor purpose_;
  FileScan scan_;
  std::uint64_t inflated_left_;  // of Limits::max_inflated_bytes
};

}  // namespace

Verdict FileScan::weakest() const noexcept {
  Verdict weakest = findings.empty() ? Verdict::known : Verdict::inert;
  for (const Global& global : globals) weakest = std::max(weakest, global.verdict);
  for (const ScanFinding& finding : findings) weakest = std::max(weakest, finding.verdict);
  return weakest;
}

FileScan scan_file(const io::ByteSourcePtr& source, const ScanOptions& options, ScanFor purpose) {
  return FileScanner(options, purpose).run(source);
}

}  // namespace ballast
