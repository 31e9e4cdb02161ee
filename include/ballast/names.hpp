// Names both ways: the tensors of a model as Hugging Face calls them, and as llama.cpp calls them in GGUF.
//
// The functions may be called from several threads at once. The tensors that to_names() returns share the storages of
// those that it is given and keep them alive.
//
// Example:
//   const Checkpoint checkpoint = to_names(open("model.gguf"), NameStyle::huggingface);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

enum class NameStyle : std::uint8_t { huggingface, gguf };

struct NameOptions {
  // "llama"; if it is empty, general.architecture of the checkpoint.
  std::string architecture{};
  // Attention heads, for architectures whose query and key rows llama.cpp reorders; if they are 0,
  // llama.attention.head_count and head_count_kv of the checkpoint. If the checkpoint says only the first, keys have as
  // many heads as queries. If only the options say the first, the shapes of the queries must confirm that.
  std::uint64_t head_count = 0, head_count_kv = 0;
  // What else values depend on, where the checkpoint does not say it: numbers under the keys of a GGUF.
  TypedMetadata numbers{};
  // If nothing says how many heads there are, the tensors whose rows depend on it throw Errc::invalid_argument only
  // when they are read. For listings.
  bool allow_unknown_heads = false;
  // A tensor without a counterpart is Errc::unsupported. llama.cpp opens no GGUF with a tensor that it does not know.
  bool refuse_unknown = false;
};

// Whether there are tensors called as llama.cpp calls them, "blk.0.attn_q.weight". Not every GGUF has such names.
bool has_gguf_names(const Checkpoint& checkpoint);

// `options`, completed with what the checkpoint says: for an adapter, the checkpoint of its base.
NameOptions completed(NameOptions options, const Checkpoint& base);

// The architectures whose names are known, as general.architecture has them.
std::vector<std::string_view> architectures_with_names();

// Names of the other style become names of `style`, and the changes that llama.cpp's converter makes to values are
// made, or undone: the rows of llama's queries and keys are reordered, the 1 that gemma's norms lack is added (the
// norms are F32 then, as the converter writes them), the matrices of gpt2 are transposed, the experts of a block are
// stacked, fused matrices are split. All of this is lazy. Reordered rows may be ggml's blocks; a tensor that is to be
// transposed must be decoded first, else Errc::unsupported.
//
// Names without a counterpart stay, and tensors that GGUF cannot hold are left out, each with a note. A checkpoint of
// an architecture that has no table stays as it is, with a note. Errc::invalid_argument if nothing says which
// architecture it is, if the options name one that has no table, if head counts are needed and missing, or if two
// tensors would get the same name. Towards GGUF, what the options say is kept in Checkpoint::typed_metadata.
Checkpoint to_names(Checkpoint checkpoint, NameStyle style, const NameOptions& options = {});

}  // namespace ballast
