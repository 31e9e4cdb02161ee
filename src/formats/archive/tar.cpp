#include "formats/archive/tar.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/repeated_names.hpp"
#include "formats/archive/tar_header.hpp"
#include "io/section.hpp"

namespace ballast::archive {
namespace {

// Members that describe the one after them are small: a name and a few records.
constexpr std::uint64_t kMaxDescriptionBytes = 1 << 20;
// Tars are filled up with zeros to a multiple of their record, 10 KiB as a rule.
constexpr std::uint64_t kMaxPaddingBytes = 1 << 20;
// The largest size that the octal field can say.
constexpr std::uint64_t kMaxOctalSize = 077777777777;

struct Kind {
  char type;
  const char* what;
};

constexpr std::array kRefusedKinds = {
    Kind{'1', "a hard link"},
    Kind{'2', "a symbolic link"},
    Kind{'3', "a device"},
    Kind{'4', "a device"},
    Kind{'6', "a named pipe"},
    Kind{'7', "a contiguous file"},
    Kind{'K', "a link"},
    Kind{'S', "a sparse file"},
    Kind{'M', "the rest of a file in another archive"},
    Kind{'D', "a folder's listing"},
    Kind{'V', "a volume label"},
};

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

class TarReader {
 public:
  TarReader(const Source& source, const Limits& limits)
      : source_(source), size_(source.size_bytes()), limits_(limits) {}

  std::vector<TarMember> read() {
    while (at_ < size_ && read_one()) continue;
    if (pending_name_ || pending_pax_) fail(Errc::malformed, "ends after the description of a member, without it");
    check_names_differ();
    return std::move(members_);
  }

 private:
  // False at the end of the archive.
  bool read_one() {
    header_offset_ = at_;
    std::array<std::byte, kTarBlockBytes> block;
    if (size_ - at_ < block.size()) fail(Errc::malformed, "ends inside a tar header");
    source_.read(at_, block);
    if (is_zero(block)) {
      check_padding();
      return false;
    }
    TarHeader header = read_tar_header(block, at_);
    apply_pax_size(header);
    const std::uint64_t data_offset = at_ + block.size();
    if (!is_inside(data_offset, header.bytes, size_))
      fail(Errc::malformed, fmt::format("member {} has {} bytes, but only {} follow", quote(header.name), header.bytes,
                                        size_ - data_offset));
    take(header, data_offset);
    // The last member of a tar without its end may lack the zeros behind it.
    at_ = std::min(fits(checked_align_up(data_offset + header.bytes, kTarBlockBytes), "a member's end"), size_);
    return true;
  }

  void take(TarHeader& header, std::uint64_t data_offset) {
    switch (header.type) {
      case 'L': pending_name_ = read_long_name(header, data_offset); return;
      case 'x': pending_pax_ = read_pax_records(read_description(header, data_offset), data_offset); return;
      case 'g': refuse_global_names(read_pax_records(read_description(header, data_offset), data_offset)); return;
      default: break;
    }
    std::string name = final_name(header);
    if (header.type == '0')
      add(std::move(name), data_offset, header.bytes);
    else if (header.type != '5')
      refuse_kind(header.type, name);
    else if (header.bytes != 0)
      fail(Errc::malformed, fmt::format("the folder {} has data", quote(name)));
  }

  std::string read_description(const TarHeader& header, std::uint64_t data_offset) {
    if (pending_pax_ || (header.type == 'L' && pending_name_)) fail(Errc::malformed, "a member is described twice");
    if (header.bytes > kMaxDescriptionBytes)
      fail(Errc::limit, fmt::format("the description of a member has {} bytes", header.bytes));
    std::string text(static_cast<std::size_t>(header.bytes), '\0');
    source_.read(data_offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  std::string read_long_name(const TarHeader& header, std::uint64_t data_offset) {
    std::string name = read_description(header, data_offset);
    if (!name.empty() && name.back() == '\0') name.pop_back();
    return name;
  }

  void refuse_global_names(const PaxRecords& records) {
    if (records.path || records.size) fail(Errc::malformed, "a pax record gives all members one name or size");
  }

  // A pax record may give a size that does not fit the header; any other size must be the header's.
  void apply_pax_size(TarHeader& header) {
    if (!pending_pax_ || !pending_pax_->size || *pending_pax_->size == header.bytes) return;
    if (*pending_pax_->size <= kMaxOctalSize)
      fail(Errc::malformed, fmt::format("member {} has {} bytes in its header but {} in a pax record",
                                        quote(header.name), header.bytes, *pending_pax_->size));
    header.bytes = *pending_pax_->size;
  }

  std::string final_name(TarHeader& header) {
    std::string name = std::move(header.name);
    if (pending_name_) name = std::move(*pending_name_);
    if (pending_pax_ && pending_pax_->path) {
      if (pending_name_) fail(Errc::malformed, "a member has two long names");
      name = std::move(*pending_pax_->path);
    }
    pending_name_.reset();
    pending_pax_.reset();
    while (name.starts_with("./")) name.erase(0, 2);
    return name;
  }

  void add(std::string name, std::uint64_t data_offset, std::uint64_t bytes) {
    if (name.empty() || name.ends_with('/') || name.find('\0') != name.npos)
      fail(Errc::malformed, fmt::format("a file is called {}", quote(name)));
    if (members_.size() >= limits_.max_archive_members)
      fail(Errc::limit, fmt::format("has more members than the {} allowed", limits_.max_archive_members),
           raise_limit("max_archive_members"));
    members_.push_back({std::move(name), data_offset, bytes});
  }

  [[noreturn]] void refuse_kind(char type, const std::string& name) {
    const auto kind = std::find_if(kRefusedKinds.begin(), kRefusedKinds.end(),
                                   [&](const Kind& refused) { return refused.type == type; });
    const std::string what =
        kind != kRefusedKinds.end() ? kind->what : fmt::format("of type {}", quote(std::string_view(&type, 1)));
    fail(Errc::unsupported, fmt::format("member {} is {}; only plain files are read", quote(name), what));
  }

  // One block of zeros ends an archive, and what follows would be hidden: so it must be zeros, too.
  void check_padding() {
    if (size_ - at_ > kMaxPaddingBytes) fail(Errc::malformed, fmt::format("{} bytes follow its end", size_ - at_));
    std::vector<std::byte> rest(static_cast<std::size_t>(size_ - at_));
    source_.read(at_, rest);
    if (is_zero(rest)) return;
    const auto found = std::find_if(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; });
    header_offset_ = at_ + static_cast<std::uint64_t>(found - rest.begin());
    fail(Errc::malformed, "something follows its end");
  }

  void check_names_differ() {
    for (const std::size_t i : repeated_names(members_)) {
      header_offset_ = members_[i].data_offset - kTarBlockBytes;
      fail(Errc::malformed, fmt::format("two members are called {}", quote(members_[i].name)));
    }
  }

  [[noreturn]] void fail(Errc code, std::string what, Advice hint = {}) const {
    throw Error(code, "a tar archive: " + what).at_byte(header_offset_).hint(std::move(hint));
  }

  const Source& source_;
  std::uint64_t size_;
  const Limits& limits_;
  std::uint64_t at_ = 0;
  std::uint64_t header_offset_ = 0;  // of the member that is being read, for messages
  std::vector<TarMember> members_;
  std::optional<std::string> pending_name_;  // from GNU tar, for the next member
  std::optional<PaxRecords> pending_pax_;
};

}  // namespace

const TarMember* Tar::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const TarMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

bool looks_like_tar(std::span<const std::byte> first_bytes) noexcept { return has_tar_checksum(first_bytes); }

Tar read_tar(const SourcePtr& source, const Limits& limits) {
  try {
    return {source, TarReader(*source, limits).read()};
  } catch (Error& error) {
    throw error.in(source->name());
  }
}

SourcePtr member_source(const Tar& tar, const TarMember& member) {
  return io::section(tar.source, member.data_offset, member.bytes, tar.source->name() + "!/" + member.name);
}

}  // namespace ballast::archive
