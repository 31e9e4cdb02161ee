// align: two checkpoints of one model under the same names, so that they can be compared.
//
// A GGUF calls the tensors of a model otherwise than Hugging Face does, and programs put prefixes before the names
// ("module.", "_orig_mod.", "base_model.model."). align() finds that out by the names alone, and says what it did.
//
// align() reads no tensor data, and may be called from several threads at once. The tensors that it returns share the
// storages of those that it is given and keep them alive.
//
// Example:
//   const Aligned both = align(open("model.gguf"), open("Llama-3.2-1B/"));
//   const DiffReport report = diff(both.a, both.b, {.ignore_dtype = true});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/names.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

enum class AlignNames : std::uint8_t {
  automatic,    // as they are; if only one of the two has llama.cpp's names, that one gets those of Hugging Face
  keep,         // as they are, prefixes too
  huggingface,  // both get the names of Hugging Face
  gguf,         // both get those of llama.cpp
};

struct AlignOptions {
  AlignNames names = AlignNames::automatic;
  NameOptions name_options{};  // what neither checkpoint says
  OpenOptions open{};          // for the config.json beside a checkpoint, which is read only if it is needed
};

struct Aligned {
  Checkpoint a, b;
  std::vector<Note> notes;           // what was done
  std::optional<NameStyle> style{};  // the names that one of them got, or both
  std::string prefix{};              // what the names of only one of them began with
};

// With automatic names, nothing is done unless more names are the same afterwards. A prefix counts only if at least
// nine of ten names of the smaller checkpoint are found by it, and no other prefix would find any number of them; names
// of A stay as they are, and those of B get the prefix or lose it.
//
// If the names are asked for, throws what to_names() throws.
Aligned align(Checkpoint a, Checkpoint b, const AlignOptions& options = {});

}  // namespace ballast
