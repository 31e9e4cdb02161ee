// FileFormat: what Ballast knows of one file format, as a value. What a format cannot do is left out of its row.
//
// Each format has a row in its own folder, all.cpp has the table of them. Detection, open, scan, save, folders,
// metadata and the texts of help and hints take what they need from the rows. CONTRIBUTING.md says how a new format is
// added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>
#include <ballast/save_plan.hpp>
#include <ballast/source.hpp>

#include "formats/archive/zip.hpp"

namespace ballast {

// --- reading

// How a file is read, and who reads what lies inside of it. Files inside each other count against the limits.
struct ReadContext {
  const OpenOptions& options;
  std::function<Checkpoint(const SourcePtr& inside)> read_file;
  std::function<Checkpoint(const SourcePtr& file, std::uint64_t first)> read_pickle;  // the pickle begins at `first`
};

// A file whose format is known.
struct FileToRead {
  SourcePtr source;               // with its beginning in memory
  std::shared_ptr<void> begun{};  // what FileFormat::claim made of it
};

// --- scanning

struct ScannedPart {
  SourcePtr source;
  std::string member;       // its path in the archives around it: "a.zip/b.pkl"; empty for the file itself
  std::uint64_t depth = 0;  // the number of those archives
};

// What the formats need from whoever scans.
class Scanner {
 public:
  virtual ~Scanner() = default;
  virtual const Limits& limits() const = 0;
  virtual void find(const std::string& where, std::optional<std::uint64_t> offset, const std::string& what) = 0;
  virtual void scan_file(const ScannedPart& inside) = 0;
  virtual void scan_pickles(const ScannedPart& part, std::uint64_t first, std::uint64_t last) = 0;
  // For bytes that somebody can write so that they are a pickle as well. The first function takes findings only from
  // what surely is a pickle; the second one also reports that the file can be read as one.
  virtual bool scan_on_the_chance(const ScannedPart& part, std::uint64_t first) = 0;
  virtual void scan_as_pickle_too(const ScannedPart& part) = 0;
};

// --- writing

using Entries = std::vector<const StateDict::Entry*>;

// What goes into a shard as a whole: a tensor, or several that share bytes.
struct Bundle {
  std::vector<std::size_t> members;  // the numbers of values, ascending
  std::uint64_t bytes = 0, numel = 0;
};

// The file that is laid out: one of several shards, or the only one.
struct FilePlace {
  std::string path;
  std::size_t number = 0, count = 1;  // from 0
};

// What a format makes of a checkpoint: the tensors that it stores, as values with numbers, and the files that hold some
// of these values.
class Layouts {
 public:
  virtual ~Layouts() = default;

  virtual std::string_view name(std::size_t value) const = 0;
  virtual std::vector<Bundle> bundles() const = 0;  // values that must go into the same file

  // Lays out a file of these values. Adds a note about everything that is lost that way.
  virtual SavePlan::File lay_out(std::span<const std::size_t> values, const FilePlace& place,
                                 std::vector<Note>& notes) const = 0;
};

// For formats that store every tensor by itself: values are the tensors of the checkpoint, which must outlive this
// object.
class TensorLayouts : public Layouts {
 public:
  explicit TensorLayouts(const Checkpoint& checkpoint);

  std::string_view name(std::size_t value) const override { return entries_[value]->name; }
  std::vector<Bundle> bundles() const override;
  SavePlan::File lay_out(std::span<const std::size_t> values, const FilePlace& place,
                         std::vector<Note>& notes) const override;

 protected:
  const Entries& entries() const noexcept { return entries_; }
  // The path and the number of tensors are filled in by the caller.
  virtual SavePlan::File lay_out_file(Entries entries, const FilePlace& place) const = 0;

 private:
  Entries entries_;
};

enum class Sharding : std::uint8_t {
  by_index,  // an ...index.json says which shard holds what
  by_names,  // the shards know each other
  none,
};

// What a file can hold besides tensors.
struct Keeps {
  bool metadata = false;        // texts by keys
  bool typed_metadata = false;  // numbers and arrays, too
  bool agreements = false;      // aliases, tensors in parts, compressed ones: kept in the metadata by agreement
  bool quantized = false;       // a quantized tensor with its scales is one tensor
};

// The bytes before the data, with edited metadata.
struct EditedHead {
  bool is_changed = false;
  Metadata before, after;  // texts by keys, if the format has those
  std::uint64_t data_begin = 0;
  std::vector<std::byte> head;  // as many bytes as before, if they fit
};

// --- the row

struct Ending {
  std::string_view text;        // ".safetensors"
  std::string_view usual_name;  // of a model with this ending: "model.safetensors"
};

struct FileFormat {
  std::string_view name;   // in lists: "safetensors", "PyTorch"
  std::string_view bytes;  // what such a file is by its bytes: "a safetensors file", "a zip archive"

  // Recognition by the first bytes; formats in zips have no first bytes of their own.
  bool (*begins)(std::span<const std::byte> first) = nullptr;
  bool is_short_magic = false;  // so few bytes that another format may begin with them: then they say nothing
  bool holds_files = false;     // other files may lie inside: scan also looks for this format in the strings of pickles
  // For files without a magic: parses the file to find out whether it has this format. Returns what read() goes on
  // with, or nothing.
  std::shared_ptr<void> (*claim)(const SourcePtr& file, std::span<const std::byte> first,
                                 const Limits& limits) = nullptr;
  // Whether the file had this format before it was damaged. The reader then says what is wrong.
  bool (*was)(const Source& file, std::span<const std::byte> first) = nullptr;

  // Reading.
  Checkpoint (*read)(const FileToRead& file, const ReadContext& context) = nullptr;
  // For a format whose files name each other: reads the whole set, whichever file is given; and lists the names of the
  // set from the name of one file.
  Checkpoint (*read_set)(const SourcePtr& file, const ReadContext& context) = nullptr;
  std::vector<std::string> (*set_of)(const std::string& name, const Limits& limits) = nullptr;

  // For a zip: whether its members make up a checkpoint of this format, and which of them are numbers, whatever they
  // look like. Without read_zip(), each member is a checkpoint, named like the member without `member_ending`.
  bool (*is_in)(const archive::Zip& zip) = nullptr;
  Checkpoint (*read_zip)(const archive::Zip& zip, const ReadContext& context) = nullptr;
  std::string_view member_ending{};
  std::unordered_set<const archive::ZipMember*> (*numbers_in)(const archive::Zip& zip, const Limits& limits) = nullptr;

  // If this is null, there are no pickles inside: the file is scanned as if it were a pickle all the same, and then
  // read.
  void (*scan)(const ScannedPart& file, Scanner& scanner) = nullptr;

  // The endings of such files: for folders, the best first, and for files that are written.
  std::span<const Ending> endings{};

  // Writing.
  Format format = Format::archive;  // of a written file that is read again, and of a zip without read_zip()
  std::string_view written{};       // "a torch state dict"
  std::unique_ptr<Layouts> (*layouts)(const Checkpoint& checkpoint, const SaveOptions& options) = nullptr;
  Sharding sharding = Sharding::by_index;
  Keeps keeps{};
  // Throws Errc::not_found for a key that is to be removed and is not there.
  EditedHead (*edit)(const SourcePtr& file, const MetadataEdit& edit, const Limits& limits) = nullptr;
};

}  // namespace ballast
