#include "checkpoint/agreements/ggml_blocks.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/source.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/agreements/composites.hpp"
#include "core/base64.hpp"
#include "core/json_string.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/gguf/encode.hpp"
#include "formats/gguf/header.hpp"

namespace ballast {
namespace {

constexpr std::string_view kGgmlBlocksKey = "ballast.gguf";

bool is_blocks(const Tensor& tensor) { return info(tensor.dtype()).kind == DTypeKind::ggml; }

// Written as a GGUF file without tensors: that is the shortest code, since a reader for it exists.
std::string fields_text(const TypedMetadata& fields) {
  const auto bytes = gguf::encoded_fields(gguf::kVersion, 0, fields);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// One row of bytes for each row of elements.
Shape byte_shape(const Tensor& tensor) {
  const DTypeInfo& type = info(tensor.dtype());
  std::vector<std::uint64_t> dims(tensor.shape().begin(), tensor.shape().end());
  if (dims.empty() || dims.back() % type.block_elements != 0) return Shape{tensor.nbytes()};
  dims.back() = dims.back() / type.block_elements * type.block_bytes;
  return Shape(dims);
}

struct Block {
  std::string name;
  DType dtype;
  Shape shape;
};
struct Agreement {
  std::vector<std::string> order;
  std::vector<Block> blocks;
  TypedMetadata fields;
};

void append_json(std::string& text, std::string_view value) { append_json_string(text, value); }

std::string to_json(const Checkpoint& checkpoint) {
  std::string order, blocks;
  for (const auto& [name, tensor] : checkpoint) {
    append_json(order += order.empty() ? "" : ",", name);
    if (!is_blocks(tensor)) continue;
    append_json(blocks += blocks.empty() ? "" : ",", name);
    blocks += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}]}}", ballast::name(tensor.dtype()),
                          fmt::join(tensor.shape(), ","));
  }
  const std::string fields = fields_text(checkpoint.typed_metadata);
  return fmt::format("{{\"order\":[{}],\"blocks\":{{{}}},\"fields\":\"{}\"}}", order, blocks,
                     to_base64(std::as_bytes(std::span(fields))));
}

// Throws Error for anything that is not as to_json writes it.
Agreement agreement_from_json(std::string_view text, const Limits& limits) {
  const Json root = Json::parse(text);
  Agreement agreement;
  for (const Json& name : root.at("order").list()) agreement.order.push_back(name.text());
  for (const auto& [name, block] : root.at("blocks").members()) {
    const auto dtype = dtype_from_name(block.at("dtype").text());
    std::vector<std::uint64_t> dims;
    for (const Json& dim : block.at("shape").list()) dims.push_back(dim.count());
    if (!dtype || info(*dtype).kind != DTypeKind::ggml || dims.size() > limits.max_rank)
      throw Error(Errc::malformed, "no block type");
    agreement.blocks.push_back({name, *dtype, Shape(dims)});
  }
  auto bytes = from_base64(root.at("fields").text());
  if (!bytes) throw Error(Errc::malformed, "no base64");
  agreement.fields = gguf::read_header(*memory_source(std::move(*bytes)), limits).fields;
  return agreement;
}

// Turns the bytes of a tensor back into blocks; nothing if they cannot be such blocks.
std::optional<Tensor> as_blocks(const Checkpoint& checkpoint, const Block& block) {
  const Tensor* bytes = checkpoint.find(block.name);
  const auto count = block.shape.numel();
  const auto size = count ? bytes_of(block.dtype, *count) : std::nullopt;
  if (!bytes || bytes->dtype() != DType::u8 || !bytes->is_contiguous() || size != bytes->nbytes()) return std::nullopt;
  return Tensor(block.dtype, block.shape, bytes->storage(), bytes->offset());
}

}  // namespace

Checkpoint fold_ggml_blocks(Checkpoint checkpoint) {
  checkpoint.metadata[std::string(kGgmlBlocksKey)] = to_json(checkpoint);
  for (const auto& [name, tensor] : StateDict(checkpoint.tensors)) {
    if (!is_blocks(tensor)) continue;
    checkpoint.tensors.replace(name, Tensor(DType::u8, byte_shape(tensor), tensor.storage(), tensor.offset()));
  }
  checkpoint.typed_metadata = {};
  return checkpoint;
}

Checkpoint unfold_ggml_blocks(Checkpoint checkpoint) {
  const auto entry = checkpoint.metadata.find(kGgmlBlocksKey);
  if (entry == checkpoint.metadata.end()) return checkpoint;
  const auto give_up = [&] {
    checkpoint.notes.push_back({checkpoint.target, "the metadata \"ballast.gguf\" does not fit the tensors"});
    return checkpoint;
  };
  Agreement agreement;
  try {
    agreement = agreement_from_json(entry->second, {});
  } catch (const Error&) {
    return give_up();
  }
  StateDict tensors = checkpoint.tensors;
  for (const Block& block : agreement.blocks) {
    auto tensor = as_blocks(checkpoint, block);
    if (!tensor) return give_up();
    tensors.replace(block.name, std::move(*tensor));
  }
  StateDict ordered;
  for (const std::string& name : agreement.order) {
    const Tensor* tensor = tensors.find(name);
    if (!tensor || !ordered.insert(name, *tensor)) return give_up();
  }
  if (ordered.size() != tensors.size()) return give_up();
  checkpoint.tensors = std::move(ordered);
  checkpoint.typed_metadata = std::move(agreement.fields);
  checkpoint.metadata.erase(entry);
  return checkpoint;
}

Checkpoint for_safetensors(Checkpoint checkpoint) {
  for (const auto& [name, tensor] : checkpoint) {
    if (is_blocks(tensor)) {
      throw Error(Errc::unsupported, fmt::format("tensor {} has dtype {}, which safetensors cannot store", quote(name),
                                                 ballast::name(tensor.dtype())))
          .hint(mention(Remedy::cast, "F16") + " (or BF16, F32) decodes it, " + mention(Remedy::raw_blocks) +
                " keeps its blocks as bytes");
    }
  }
  // Metadata that people look for, as the strings that safetensors can hold; the vocabulary is left out.
  for (const MetadataEntry& field : checkpoint.typed_metadata) {
    if (!field.is_array()) checkpoint.metadata.try_emplace(std::string(field.key), text(field));
  }
  checkpoint.typed_metadata = {};
  return checkpoint;
}

Checkpoint for_gguf(Checkpoint checkpoint) {
  for (const auto& [key, value] : checkpoint.metadata) {
    const bool is_told_otherwise = key == "format" || checkpoint.aliases.contains(key) || key.empty();
    if (!is_told_otherwise && !checkpoint.typed_metadata.contains(key))
      checkpoint.typed_metadata.set_from_text(key, value);
  }
  return checkpoint;
}

}  // namespace ballast
