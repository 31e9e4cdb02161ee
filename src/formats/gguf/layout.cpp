#include "formats/gguf/layout.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/text.hpp"
#include "formats/gguf/encode.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/split.hpp"

namespace ballast::gguf {
namespace {

// What the header says of a tensor.
struct Stored {
  std::uint32_t type;
  const Shape* shape;
};

[[noreturn]] void refuse(const StateDict::Entry& entry, const std::string& what, std::string_view way_out) {
  throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " " + what).hint(way_out);
}

Stored stored(const StateDict::Entry& entry, const UnknownTypes& unknown) {
  if (const auto type = unknown.find(entry.name); type != unknown.end() && entry.tensor.dtype() == DType::u8)
    return {type->second.id, &type->second.shape};
  const DTypeInfo& type = info(entry.tensor.dtype());
  if (type.ggml_id < 0) {
    refuse(entry, fmt::format("has dtype {}, which ggml has no type for", type.name),
           type.kind == DTypeKind::floating ? "cast it with --dtype F16, BF16 or F32, or leave it out with --exclude"
           : type.in_safetensors            ? "write a .safetensors or a .pt, or leave the tensor out with --exclude"
                                 : "write a .pt, which has this dtype, or leave the tensor out with --exclude");
  }
  return {static_cast<std::uint32_t>(type.ggml_id), &entry.tensor.shape()};
}

void check_can_store(const StateDict::Entry& entry, const Stored& as) {
  if (entry.name.size() > kMaxNameBytes) {
    refuse(entry, fmt::format("has a name of {} bytes, and GGUF allows {}", entry.name.size(), kMaxNameBytes),
           "shorten it with --rename");
  }
  if (as.shape->rank() > kMaxRank) {
    refuse(entry, fmt::format("has {} dimensions, and GGUF allows {}", as.shape->rank(), kMaxRank),
           "leave it out with --exclude");
  }
  if (!entry.tensor.has_data()) refuse(entry, "has no data to store", "leave it out with --exclude");
  const std::uint64_t block = info(entry.tensor.dtype()).block_elements;
  const std::uint64_t row = entry.tensor.rank() == 0 ? 1 : entry.tensor.shape()[entry.tensor.rank() - 1];
  if (row % block != 0) {
    refuse(entry, fmt::format("has rows of {} elements, which are no whole blocks of {}", row, block),
           "convert it with --dtype F16, or leave it out with --exclude");
  }
}

std::vector<Entries> split_by_bytes(Entries entries, std::uint64_t max_bytes) {
  std::vector<Entries> parts;
  std::uint64_t used = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t size = entries[i]->tensor.nbytes();
    if (i > begin && (size > max_bytes || used > max_bytes - size)) {
      parts.push_back(entries.subspan(begin, i - begin));
      begin = i;
      used = 0;
    }
    used = checked_add(used, size).value_or(std::numeric_limits<std::uint64_t>::max());
  }
  parts.push_back(entries.subspan(begin));
  return parts;
}

std::string without_ending(const std::string& path) {
  constexpr std::string_view kEnding = ".gguf";
  return path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : path;
}

}  // namespace

Layout lay_out(Entries entries, const Fields& fields, const UnknownTypes& unknown, const Limits& limits) {
  const std::uint64_t alignment = alignment_of(fields);
  Layout layout;
  layout.items.reserve(entries.size());
  std::string text;
  append_preamble(text, kVersion, entries.size(), fields.size());
  for (const Field& field : fields) append_field(text, field);
  std::uint64_t end = 0;
  for (const auto* entry : entries) {
    const Stored as = stored(*entry, unknown);
    check_can_store(*entry, as);
    append_tensor(text, entry->name, *as.shape, as.type, end);
    layout.items.push_back({entry->name, &entry->tensor, end});
    const std::uint64_t past = fits(checked_add(end, entry->tensor.nbytes()), "the size of all tensors together");
    end = fits(checked_align_up(past, alignment), "the size of all tensors together");
  }
  check_header_size(text.size(), limits);

  layout.head = padded(text, alignment);
  layout.size_bytes = fits(checked_add(layout.head.size(), end), "the size of the file");
  for (Layout::Item& item : layout.items) item.offset += layout.head.size();
  return layout;
}

std::vector<Part> lay_out_parts(Entries entries, const Fields& fields, const std::string& path, std::uint64_t max_bytes,
                                const UnknownTypes& unknown, const Limits& limits) {
  const auto shares = max_bytes == 0 ? std::vector{entries} : split_by_bytes(entries, max_bytes);
  std::vector<Part> parts;
  if (shares.size() == 1) {
    if (const auto part = parse_part_name(path))
      throw Error(Errc::invalid_argument,
                  fmt::format("a whole model cannot be called part {} of {}", part->number, part->count))
          .in(path)
          .hint("give it a name that does not end in -00001-of-00002.gguf; --max-shard-size makes parts");
    parts.push_back({path, lay_out(entries, split_of(fields) ? without_split(fields) : fields, unknown, limits)});
    return parts;
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Fields part = fields_of_part(fields, i, shares.size(), entries.size());
    parts.push_back({part_path(without_ending(path), i + 1, shares.size()), lay_out(shares[i], part, unknown, limits)});
  }
  return parts;
}

}  // namespace ballast::gguf
