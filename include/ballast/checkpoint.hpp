// Checkpoint: a state dict with everything else that a file says. Making one reads headers, and no tensor data.
//
// A Checkpoint is a value: a copy shares the storages of the tensors, and these keep their sources alive. Several
// threads may read one while nobody changes it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ballast/global.hpp>
#include <ballast/json.hpp>
#include <ballast/remedy.hpp>
#include <ballast/source.hpp>
#include <ballast/state_dict.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast {

// clang-format off
enum class Format : std::uint8_t {
  safetensors, torch_zip, torch_legacy, torch_tar, torchscript, pickle, gguf, npy, npz, archive,
};
inline constexpr std::array<std::string_view, 10> kFormatNames = {
  "safetensors", "torch-zip", "torch-legacy", "torch-tar", "torchscript", "pickle", "gguf", "npy", "npz", "archive",
};
// clang-format on
constexpr std::string_view name(Format format) noexcept { return kFormatNames[static_cast<std::size_t>(format)]; }

// Something that is worth saying but is not an error: a stale index, leading spaces in a header, a skipped object.
struct Note {
  enum class Kind : std::uint8_t {
    oddity,  // something is not as it should be; a finding of verify()
    remark,  // all is well, but the fact is worth a sentence
  };
  std::string where;
  std::string text;
  Kind kind = Kind::oddity;
  Advice hint{};
};

struct CheckpointFile {
  std::string path;  // as it was opened
  std::uint64_t bytes = 0;
  SourcePtr source{};  // the source that it was read from; null if a conversion cache was read instead
};

// A value beside the tensors in a pickle: an epoch, a learning rate, an argument.
struct PlainValue {
  std::string path;  // the name that a tensor in the same position would have
  std::string type;  // "int", "str", "bytes", "set", "datetime.datetime", ...
  // A value that JSON can hold; for everything else, and for integers beyond 64 bits, the text that Python would show.
  std::variant<std::monostate, bool, std::int64_t, double, std::string> value;
};

// A tensor that a file stores in parts. The parts are tensors of their own, called NAME.indices, NAME.scales and so on.
struct Composite {
  std::string name;
  std::string layout;  // "sparse_coo", "sparse_csr", ..., "quantized", "nested"
  Shape shape;         // of the whole
  std::vector<std::string> parts;
  // For a quantized tensor: value = (integer - zero_point) * scale. If these differ per channel, both are parts, and
  // `axis` says along which dimension.
  double scale = 1;
  std::int64_t zero_point = 0;
  std::optional<std::size_t> axis;
  std::optional<DType> dtype{};  // of the whole, if the file says it and no part has it
};

// A subtree that holds tensors and that `OpenOptions::root` can name.
struct Root {
  std::string path;
  std::uint64_t tensors = 0;
};

// A tensor of a ggml type that is newer than this library. The tensor is listed as its bytes, U8; this says what they
// are.
struct UnknownGgml {
  std::uint32_t id = 0;  // ggml's number of the type
  Shape shape;
};

// Weights that a scheme such as GPTQ keeps in several tensors. These tensors are listed as the file has them, and none
// of them is a weight: they can be copied, and nothing else is done to them. dequantize() makes the weights.
struct Quantization {
  std::string scheme;                      // as quantization_config calls it: "gptq", "awq", "bitsandbytes", "fp8", ...
  std::string evidence;                    // what says so: a file, or the names of the tensors
  std::optional<std::uint64_t> bits;       // of a value, if a configuration says it
  std::optional<std::int64_t> group_size;  // values that share a scale, if a configuration says it
  std::uint64_t modules = 0;               // how many weights are kept in this way
  StateDict parts;                         // the tensors as they were opened, whatever their names are now
  Json config;                             // the quantization_config, as the file beside the weights has it; or null
  Json model;                              // the config.json beside the weights; or null
  DType dtype = DType::bf16;               // of the model, as its config.json says; if it does not, BF16
};

using Metadata = std::map<std::string, std::string, std::less<>>;

// A change of metadata: see metadata.hpp.
struct MetadataEdit {
  std::map<std::string, std::string> set{};
  std::vector<std::string> unset{};
};

struct Checkpoint {
  // Defined in the library: this code is long, and would be compiled again into every file that uses a checkpoint.
  Checkpoint();
  // A state dict is a checkpoint that says nothing else. So whatever takes a checkpoint takes what load() returns.
  Checkpoint(StateDict state);
  Checkpoint(const Checkpoint& other);
  Checkpoint(Checkpoint&& other) noexcept;
  Checkpoint& operator=(const Checkpoint& other);
  Checkpoint& operator=(Checkpoint&& other) noexcept;
  ~Checkpoint();

  StateDict tensors;  // in the file's order, aliases last
  Metadata metadata;
  TypedMetadata typed_metadata;                                  // typed metadata, from GGUF
  std::map<std::string, std::string, std::less<>> aliases;       // name -> the name whose tensor it shares by agreement
  std::vector<PlainValue> values;                                // in the file's order
  std::vector<Composite> composites;                             // in the file's order
  std::map<std::string, UnknownGgml, std::less<>> unknown_ggml;  // by name
  std::optional<Quantization> quantization;                      // if weights are kept in parts that are not weights
  std::string dequantized;        // the scheme that weights were kept in before dequantize(); empty if there was none
  std::vector<Root> roots;        // the likeliest state dict first; empty if names are not nested
  std::vector<Global> dangerous;  // what save() and load_state_dict() refuse to go on with
  std::vector<Note> notes;
  std::uint64_t unused_bytes = 0;  // bytes of storages that no tensor uses
  std::vector<CheckpointFile> files;
  std::string target;  // what was opened
  Format format = Format::safetensors;
  std::uint64_t shards = 1;

  std::size_t size() const noexcept { return tensors.size(); }
  auto begin() const noexcept { return tensors.begin(); }
  auto end() const noexcept { return tensors.end(); }
  bool contains(std::string_view name) const noexcept { return tensors.contains(name); }
  const Tensor* find(std::string_view name) const noexcept { return tensors.find(name); }
  const Tensor& at(std::string_view name) const { return tensors.at(name); }
};

}  // namespace ballast
