#include "formats/gguf/layout.hpp"

#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/gguf/encode.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/split.hpp"

namespace ballast::gguf {
namespace {

constexpr std::size_t kMostBesideName = 56;  // the other bytes that the header has of a tensor of four dimensions

// What the header says of a tensor.
struct Stored {
  std::uint32_t type;
  const Shape* shape;
};

[[noreturn]] void refuse(const StateDict::Entry& entry, const std::string& what, Advice way_out) {
  throw Error(Errc::unsupported, "tensor " + quote(entry.name) + " " + what).hint(std::move(way_out));
}

Stored stored(const StateDict::Entry& entry, const UnknownTypes& unknown) {
  if (const auto type = unknown.find(entry.name); type != unknown.end() && entry.tensor.dtype() == DType::u8)
    return {type->second.id, &type->second.shape};
  const DTypeInfo& type = info(entry.tensor.dtype());
  if (type.ggml_id < 0) {
    refuse(entry, fmt::format("has dtype {}, which ggml has no type for", type.name),
           type.kind == DTypeKind::floating ? cast_it_or_leave_it_out("F16, BF16 or F32")
           : type.in_safetensors            ? "write a .safetensors or a .pt, or " + leave_it_out()
                                            : "write a .pt, which has this dtype, or " + leave_it_out());
  }
  return {static_cast<std::uint32_t>(type.ggml_id), &entry.tensor.shape()};
}

void check_can_store(const StateDict::Entry& entry, const Stored& as) {
  if (entry.name.size() > kMaxNameBytes) {
    refuse(entry, fmt::format("has a name of {} bytes, and GGUF allows {}", entry.name.size(), kMaxNameBytes),
           "shorten it with " + mention(Remedy::rename));
  }
  if (as.shape->rank() > kMaxRank) {
    refuse(entry, fmt::format("has {} dimensions, and GGUF allows {}", as.shape->rank(), kMaxRank), leave_it_out());
  }
  if (!entry.tensor.has_data()) refuse(entry, "has no data to store", leave_it_out());
  const std::uint64_t block = info(entry.tensor.dtype()).block_elements;
  const std::uint64_t row = entry.tensor.rank() == 0 ? 1 : entry.tensor.shape()[entry.tensor.rank() - 1];
  if (row % block != 0) {
    refuse(entry, fmt::format("has rows of {} elements, which are no whole blocks of {}", row, block),
           cast_it_or_leave_it_out("F16"));
  }
}

}  // namespace

SavePlan::File lay_out(std::span<const StateDict::Entry* const> entries, const TypedMetadata& fields,
                       const UnknownTypes& unknown, const Limits& limits) {
  const std::uint64_t alignment = alignment_of(fields);
  SavePlan::File file;
  file.items.reserve(entries.size());
  std::size_t room = static_cast<std::size_t>(alignment);
  for (const auto* entry : entries) room += entry->name.size() + kMostBesideName;
  file.head = encoded_fields(kVersion, entries.size(), fields, room);
  std::uint64_t end = 0;
  for (const auto* entry : entries) {
    const Stored as = stored(*entry, unknown);
    check_can_store(*entry, as);
    append_tensor(file.head, entry->name, *as.shape, as.type, end);
    file.items.push_back({std::string(entry->name), entry->tensor, end});
    const std::uint64_t past = fits(checked_add(end, entry->tensor.nbytes()), "the size of all tensors together");
    end = fits(checked_align_up(past, alignment), "the size of all tensors together");
  }
  check_header_size(file.head.size(), limits);
  pad(file.head, alignment);
  file.size_bytes = fits(checked_add(file.head.size(), end), "the size of the file");
  for (SavePlan::Item& item : file.items) item.offset += file.head.size();
  return file;
}

namespace {

class GgufLayouts final : public TensorLayouts {
 public:
  GgufLayouts(const Checkpoint& checkpoint, const Limits& limits)
      : TensorLayouts(checkpoint), checkpoint_(checkpoint), limits_(limits) {}

 private:
  SavePlan::File lay_out_file(Entries chosen, const FilePlace& place) const override {
    return gguf::lay_out(chosen, fields_for(place), checkpoint_.unknown_ggml, limits_);
  }

  TypedMetadata fields_for(const FilePlace& place) const {
    const TypedMetadata& fields = checkpoint_.typed_metadata;
    if (place.count > 1) return fields_of_part(fields, place.number, place.count, entries().size());
    if (const auto part = parse_part_name(place.path))
      throw Error(Errc::invalid_argument,
                  fmt::format("a whole model cannot be called part {} of {}", part->number, part->count))
          .in(place.path)
          .hint("give it a name that does not end in -00001-of-00002.gguf; " + mention(Remedy::max_shard_bytes) +
                " makes parts");
    return split_of(fields) ? without_split(fields) : fields;
  }

  const Checkpoint& checkpoint_;
  const Limits& limits_;
};

}  // namespace

std::unique_ptr<Layouts> layouts(const Checkpoint& checkpoint, const SaveOptions& options) {
  return std::make_unique<GgufLayouts>(checkpoint, options.limits);
}

}  // namespace ballast::gguf
