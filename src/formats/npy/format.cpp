#include "formats/npy/format.hpp"

#include <algorithm>
#include <array>

#include "formats/npy/npz_layout.hpp"
#include "formats/npy/reader.hpp"

namespace ballast::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY", kEnding = ".npy";
constexpr std::array kNpzEndings = {Ending{".npz", "weights.npz"}};  // as MLX called them

bool looks_like_npy(std::span<const std::byte> first) {
  return std::string_view(reinterpret_cast<const char*>(first.data()), first.size()).starts_with(kMagic);
}

// An array of numbers is a tensor without a name; an array of objects is a pickle after a header.
Checkpoint read_file(const FileToRead& file, const ReadContext& context) {
  const Header header = read_header(*file.source, context.options.limits);
  Checkpoint checkpoint;
  if (header.type.is_object())
    checkpoint = context.read_pickle(file.source, header.data_offset);
  else
    checkpoint.tensors.insert("", read_tensor(file.source, header));
  checkpoint.format = Format::npy;
  return checkpoint;
}

// NumPy knows many words for objects ("object", "i4,O"), and runs the pickle behind the header for each of them.
void scan_file(const ScannedPart& file, Scanner& scanner) {
  const Header header = read_header(*file.source, scanner.limits());
  if (header.type.is_object()) {
    scanner.scan_pickles(file, header.data_offset, file.source->size_bytes());
  } else if (!header.type.dtype) {
    scanner.scan_on_the_chance(file, header.data_offset);
  }
}

bool is_npz(const archive::Zip& zip) {
  return !zip.members.empty() &&
         std::ranges::all_of(zip.members, [](const auto& member) { return member.name.ends_with(kEnding); });
}

}  // namespace

constinit const FileFormat kFormat = {
    .name = "NumPy",
    .bytes = "a NumPy file",
    .begins = looks_like_npy,
    .holds_files = true,
    .read = read_file,
    .scan = scan_file,
    .format = Format::npy,
};

constinit const FileFormat kNpz = {
    .name = "NumPy",
    .bytes = "a zip archive",
    .is_in = is_npz,
    .member_ending = kEnding,
    .endings = kNpzEndings,
    .format = Format::npz,
    .written = "an npz archive",
    .layouts = npz_layouts,
    .sharding = Sharding::none,
};

}  // namespace ballast::npy
