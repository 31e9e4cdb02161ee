// Names both ways: the tensors of a model as Hugging Face calls them, and as llama.cpp calls them in GGUF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

enum class NameStyle : std::uint8_t { huggingface, gguf };

struct NameOptions {
  // "llama"; where it is empty, what the checkpoint says in general.architecture.
  std::string architecture{};
  // Heads of attention, for architectures whose query and key rows llama.cpp reorders; where they are 0, what the
  // checkpoint says in llama.attention.head_count and head_count_kv. A checkpoint that says only the first has as many
  // of both; where only the option says it, the queries must show that it is so.
  std::uint64_t head_count = 0, head_count_kv = 0;
  // Rows that go by heads which nothing says: Errc::invalid_argument when they are read, and not before. To look at.
  bool allow_unknown_heads = false;
};

// Whether there are tensors called as llama.cpp calls them, "blk.0.attn_q.weight", which not all of a GGUF are.
bool has_gguf_names(const Checkpoint& checkpoint);

// `options`, with what they leave open as the checkpoint says it: for an adapter, of its base.
NameOptions completed(NameOptions options, const Checkpoint& base);

// The architectures whose names are known, as general.architecture has them.
std::vector<std::string_view> architectures_with_names();

// Names of the other style become names of `style`, and what llama.cpp's converter does to values is done, or undone:
// the rows of llama's queries and keys are reordered, the 1 that gemma's norms lack is added (they are F32 then, as the
// converter writes them), the matrices of gpt2 are transposed. All lazy. Reordered rows may be ggml's blocks; what
// is transposed must be decoded first, Errc::unsupported otherwise.
//
// Names without a counterpart stay, and what GGUF has no place for is left out, each with a note. A checkpoint of an
// architecture that has no table stays as it is, with a note; Errc::invalid_argument where nothing says which it is,
// where the options name one that has no table, where head counts are needed and missing, and where two tensors would
// get one name. Towards GGUF, what the options say is kept in the fields.
Checkpoint to_names(Checkpoint checkpoint, NameStyle style, const NameOptions& options = {});

}  // namespace ballast
