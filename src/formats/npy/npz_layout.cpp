#include "formats/npy/npz_layout.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/zip_format.hpp"
#include "formats/archive/zip_writer.hpp"
#include "formats/npy/layout.hpp"
#include "kernels/crc32.hpp"

namespace ballast::npy {
namespace {

constexpr std::string_view kMemberEnding = ".npy";
constexpr std::size_t kLongestName = 0xFFFF - kMemberEnding.size();  // 16 bits say how long it is

[[noreturn]] void refuse(const StateDict::Entry& entry, const std::string& what, std::string_view way_out) {
  throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " " + what).hint(way_out);
}

// Whether a member of this name would be unpacked outside of the folder, on any system: "/etc/x", "a/../../x", "C:x".
bool leads_out(std::string_view name) {
  if (name.starts_with('/') || name.starts_with('\\') || name.substr(0, 2).ends_with(':')) return true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", begin), name.size());
    if (name.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

bool can_be_a_members_name(std::string_view name) {
  return name.size() <= kLongestName && valid_utf8_prefix(name) == name.size() && name.find('\0') == name.npos &&
         name.find(archive::kEndRecord) == name.npos;
}

void check_can_store(const StateDict::Entry& entry) {
  const DTypeInfo& type = info(entry.tensor.dtype());
  if (type.numpy_name.empty()) {
    const bool is_number = type.kind == DTypeKind::floating || type.kind == DTypeKind::ggml;
    refuse(
        entry, fmt::format("has dtype {}, which NumPy has no name for", type.name),
        is_number ? cast_it_or_leave_it_out("F32, F16 or F64") : "write a .safetensors or a .pt, or " + leave_it_out());
  }
  if (!entry.tensor.has_data()) refuse(entry, "has no data to store", leave_it_out());
  if (leads_out(entry.name)) refuse(entry, "would lead whoever unpacks the archive out of its folder", rename_it());
  if (!can_be_a_members_name(entry.name))
    refuse(entry, "has a name that a zip cannot keep: it is not UTF-8, or too long", rename_it());
}

struct Npz {
  archive::ZipWriter zip{archive::ZipStyle::plain};
  std::vector<std::vector<std::byte>> headers;  // of the arrays; each member begins with one
};

// All that is not data: a piece before each array, and the directory.
std::vector<SavePlan::Piece> pieces_of(Npz npz, std::span<const std::uint32_t> crc32s) {
  std::vector<SavePlan::Piece> pieces;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < npz.headers.size(); ++i) {
    archive::WrittenMember& member = npz.zip.members()[i];
    const auto& header = npz.headers[i];
    member.crc32 = kernels::combine_crc32(kernels::crc32(0, header), crc32s[i], member.size - header.size());
    SavePlan::Piece& piece = pieces.emplace_back(SavePlan::Piece{member.header_offset, {}});
    npz.zip.append_header(piece.bytes, member);
    piece.bytes.insert(piece.bytes.end(), header.begin(), header.end());
    end = member.data_end();
  }
  npz.zip.append_directory(pieces.emplace_back(SavePlan::Piece{end, {}}).bytes);
  return pieces;
}

class NpzLayouts final : public TensorLayouts {
 public:
  using TensorLayouts::TensorLayouts;

 private:
  SavePlan::File lay_out_file(Entries entries, const FilePlace&) const override {
    Npz npz;
    SavePlan::File file;
    for (const auto* entry : entries) {
      check_can_store(*entry);
      const auto& header = npz.headers.emplace_back(encode_header(entry->tensor));
      const auto& member =
          npz.zip.add(std::string(entry->name) + std::string(kMemberEnding), header.size() + entry->tensor.nbytes());
      file.items.push_back({std::string(entry->name), entry->tensor, member.data_offset + header.size()});
    }
    file.size_bytes = npz.zip.size_bytes();
    file.finish = [npz = std::move(npz)](std::span<const std::uint32_t> crc32s) { return pieces_of(npz, crc32s); };
    return file;
  }
};

}  // namespace

std::unique_ptr<Layouts> npz_layouts(const Checkpoint& checkpoint, const SaveOptions&) {
  return std::make_unique<NpzLayouts>(checkpoint);
}

}  // namespace ballast::npy
