#include "checkpoint/recognize/foreign.hpp"

#include <algorithm>
#include <array>

#include "checkpoint/recognize/foreign_shapes.hpp"

namespace ballast {
namespace {

using foreign::kConvert, foreign::kExport, foreign::kOther;
using namespace std::string_view_literals;

// What a scan says about such a file: nothing, or that it was not looked into; the latter also for packed data.
enum class Closed : std::uint8_t { no, yes, packed };

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  std::string_view hint;
  Closed closed = Closed::no;
};

constexpr auto kUnpack = "unpack it first"sv;
constexpr auto kOldGgml = "llama.cpp's converters make a GGUF of the original model"sv;

// clang-format off
constexpr std::array kMagics = {
    // Pointers to the file.
    Magic{0, "version https://git-lfs"sv, "a Git LFS pointer, not the file that it stands for", "run `git lfs pull`", Closed::yes},
    Magic{0, "# xet version"sv, "a pointer of git-xet, not the file that it stands for", "fetch the file with git-xet", Closed::yes},

    // Models of other programs.
    Magic{0, "PYTORCH1"sv, "a preview of PyTorch's zip format, which no release wrote", "save it again with PyTorch", Closed::yes},
    Magic{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, as Keras writes them", kConvert, Closed::yes},
    Magic{0, "FUGG"sv, "a GGUF whose bytes are swapped", "make it again with llama.cpp's converters"},
    Magic{0, "lmgg"sv, "a ggml file, older than GGUF", kOldGgml},
    Magic{0, "fmgg"sv, "a ggml file (ggmf), older than GGUF", kOldGgml},
    Magic{0, "tjgg"sv, "a ggml file (ggjt), older than GGUF", kOldGgml},
    Magic{0, "algg"sv, "a LoRA of ggml (ggla), older than GGUF", kOldGgml},
    Magic{0, "nsgg"sv, "a session of llama.cpp, not a model", kOther},
    Magic{0, "qsgg"sv, "the state of a sequence of llama.cpp, not a model", kOther},
    Magic{0, "24ka"sv, "a model of llama2.c", kExport},
    Magic{0, "\xc6\xd7\x34\x01"sv, "a model of llm.c", kExport},
    Magic{4, "TFL3"sv, "a TensorFlow Lite model", kExport},
    Magic{4, "ORTM"sv, "a model of ONNX Runtime", kExport},
    Magic{4, "ET12"sv, "a program of ExecuTorch", kExport},
    Magic{4, "PTMF"sv, "a model of PyTorch Mobile", kExport},
    Magic{0, "\x04\0\0\0\x01\0\0\0\x03\0\0\0V 1"sv, "a file of Lua Torch (.t7)", kConvert},
    Magic{0, "4\n1\n3\nV 1\n"sv, "a file of Lua Torch (.t7)", kConvert},
    Magic{0, "\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv, "parameters of MXNet", kConvert},
    Magic{0, "\xba\x16\x4f\x2f"sv, "a model of fastText", kConvert},
    Magic{0, "CBM1"sv, "a model of CatBoost", kOther},
    Magic{0, "7767517\n"sv, "a network of ncnn", kOther},

    // Packed.
    Magic{0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", kUnpack, Closed::packed},
    Magic{0, "Rar!\x1a\x07"sv, "a RAR archive", kUnpack, Closed::packed},
    Magic{0, "\x1f\x8b"sv, "a gzip file", kUnpack, Closed::packed},
    Magic{0, "\xfd" "7zXZ\0"sv, "an xz file", kUnpack, Closed::packed},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "a zstd file", kUnpack, Closed::packed},
    Magic{0, "BZh"sv, "a bzip2 file", kUnpack, Closed::packed},
    Magic{0, "\x04\x22\x4d\x18"sv, "an lz4 file", kUnpack, Closed::packed},
    Magic{0, "\x5d\0\0"sv, "an lzma file", kUnpack, Closed::packed},
    Magic{0, "!<arch>\n"sv, "an archive of object files", kOther},

    // Programs.
    Magic{0, "\x7f" "ELF"sv, "a program or a library (ELF)", kOther},
    Magic{0, "\xcf\xfa\xed\xfe"sv, "a program or a library (Mach-O)", kOther},
    Magic{0, "\xca\xfe\xba\xbe"sv, "a program (Mach-O or Java)", kOther},
    Magic{0, "\0asm"sv, "a WebAssembly module", kOther},
    Magic{0, "BC\xc0\xde"sv, "LLVM bitcode", kOther},

    // Data, pictures, documents.
    Magic{0, "SQLite format 3\0"sv, "an SQLite database", kOther},
    Magic{0, "PAR1"sv, "a Parquet file", kOther},
    Magic{0, "ARROW1"sv, "an Arrow file", kOther},
    Magic{0, "MATLAB 5.0 MAT-file"sv, "a MATLAB file", kConvert},
    Magic{0, "MATLAB 7.3 MAT-file"sv, "a MATLAB file", kConvert},
    Magic{0, "%PDF-"sv, "a PDF document", kOther},
    Magic{0, "\x89PNG\r\n\x1a\n"sv, "a PNG image", kOther},
    Magic{0, "\xff\xd8\xff"sv, "a JPEG image", kOther},
    Magic{0, "GIF8"sv, "a GIF image", kOther},
    Magic{8, "WEBP"sv, "a WebP image", kOther},
    Magic{0, "RIFF"sv, "a sound or a film (RIFF)", kOther},
    Magic{0, "OggS"sv, "a sound or a film (Ogg)", kOther},
    Magic{0, "fLaC"sv, "a sound (FLAC)", kOther},
    Magic{4, "ftyp"sv, "a film (MP4)", kOther},
};
// clang-format on

const Magic* find_magic(std::string_view first) {
  const auto magic = std::find_if(kMagics.begin(), kMagics.end(), [&](const Magic& row) {
    return first.size() >= row.offset && first.substr(row.offset).starts_with(row.bytes);
  });
  return magic == kMagics.end() ? nullptr : &*magic;
}

// Checks more than the magic: gzip has one method and five flags, and the blocks of bzip2 begin with the digits of pi.
bool is_surely_packed(const Magic& magic, std::string_view first) {
  if (magic.closed != Closed::packed) return false;
  if (magic.bytes == "\x1f\x8b"sv) return first.size() > 3 && first[2] == '\x08' && (first[3] & 0xE0) == 0;
  // The size of the dictionary, then the size of the data, which is below 2^56 or unknown.
  if (magic.bytes == "\x5d\0\0"sv) return first.size() > 12 && (first[12] == '\0' || first[12] == '\xff');
  if (magic.bytes == "BZh"sv) return first.substr(std::min<std::size_t>(4, first.size())).starts_with("1AY&SY");
  return true;
}

// Formats without a magic. Text comes first, because a file that is all text is nothing else.
constexpr std::array kShapes = {foreign::text,         foreign::tensorflow_table, foreign::protobuf,
                                foreign::message_pack, foreign::ctranslate2,      foreign::lua_table,
                                foreign::llama2_c,     foreign::darknet};

}  // namespace

std::optional<ForeignFormat> find_foreign_format(const FileLook& look) {
  if (const Magic* magic = find_magic(look.first)) return ForeignFormat{std::string(magic->what), magic->hint};
  for (const auto look_for : kShapes) {
    if (auto found = look_for(look)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> find_closed_format(std::string_view first, bool inside_of_archive) {
  const Magic* magic = find_magic(first);
  if (magic == nullptr || magic->closed == Closed::no) return std::nullopt;
  if (inside_of_archive && !is_surely_packed(*magic, first)) return std::nullopt;
  return std::string(magic->what);
}

}  // namespace ballast
