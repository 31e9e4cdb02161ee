// PyTorch's files around any bytes: the first byte says in which container, and as which part of it, the rest is put.
//
//   Whatever the bytes are, they give a checkpoint or an Error.
//   Every tensor of the checkpoint can be read from its first byte to its last, or gives an Error.
//   The same is true of the dense form of every sparse or quantized tensor.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/densify.hpp>
#include <ballast/error.hpp>
#include <ballast/open.hpp>
#include <ballast/scan.hpp>

#include "builders/tar_file.hpp"
#include "builders/zip_file.hpp"

namespace {

using ballast::Checkpoint;
using ballast::Error;
using ballast::Tensor;
using ballast::test::TarFile;
using ballast::test::u64;
using ballast::test::ZipFile;

constexpr std::string_view kMagic =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.";
constexpr std::string_view kNothing = "\x80\x02N.";

// 64 bytes that are small numbers when read as integers of any width, so that they can serve as indices too.
std::string numbers() {
  std::string text;
  for (std::uint64_t i = 0; i < 8; ++i) text += u64(i % 4);
  return text;
}

enum class Shape : std::uint8_t {
  as_it_is,
  object_of_a_stream,  // the rest of a stream after its first three pickles
  object_of_a_zip,     // with the storages "0" and "1" beside it
  object_of_a_big_endian_zip,
  constants_of_a_script,
  object_of_a_tar,
  storages_of_a_tar,
  tensors_of_a_tar,
};
constexpr unsigned kShapes = 8;

std::string zip(std::string_view object, std::string_view constants, bool is_big_endian) {
  ZipFile file;
  file.stored("a/data.pkl", object).stored("a/data/0", numbers()).stored("a/data/1", numbers().substr(0, 32));
  if (is_big_endian) file.stored("a/byteorder", "big");
  if (!constants.empty()) file.stored("a/constants.pkl", constants).stored("a/constants/0", numbers());
  return file.text();
}

std::string tar(std::string_view object, std::string_view storages, std::string_view tensors) {
  return TarFile().file("pickle", object).file("storages", storages).file("tensors", tensors).text();
}

// Has one storage, 10, of 16 floats, and one tensor, 20, of all of them.
std::string right_storages() {
  return "\x80\x02K\x01.\x80\x02(K\x0aX\x03" + std::string(3, '\0') + "cpuctorch\nFloatStorage\nt." + u64(16) +
         numbers();
}
std::string right_tensors() {
  return "\x80\x02K\x01.\x80\x02(K\x14K\x0a"
         "ctorch\nFloatTensor\nt.\x01" +
         std::string(7, '\0') + u64(16) + u64(1) + u64(0);
}

std::string wrapped(Shape shape, std::string_view rest) {
  switch (shape) {
    case Shape::as_it_is: return std::string(rest);
    case Shape::object_of_a_stream: return std::string(kMagic) + std::string(rest);
    case Shape::object_of_a_zip: return zip(rest, {}, false);
    case Shape::object_of_a_big_endian_zip: return zip(rest, {}, true);
    case Shape::constants_of_a_script: return zip(kNothing, rest, false);
    case Shape::object_of_a_tar: return tar(rest, right_storages(), right_tensors());
    case Shape::storages_of_a_tar: return tar("\x80\x02K\x14Q.", rest, right_tensors());
    case Shape::tensors_of_a_tar: return tar("\x80\x02K\x14Q.", right_storages(), rest);
  }
  return {};
}

void read_all(const Checkpoint& checkpoint) {
  constexpr std::uint64_t kMostBytes = 1 << 16;
  std::vector<std::byte> buffer;
  for (const auto& [name, tensor] : checkpoint) {
    if (tensor.nbytes() == 0 || !tensor.has_data()) continue;
    buffer.resize(std::min(tensor.nbytes(), kMostBytes));
    try {
      tensor.storage()->prepare({});
      tensor.read(0, buffer);
      tensor.read(tensor.nbytes() - buffer.size(), buffer);
    } catch (const Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file = wrapped(static_cast<Shape>(data[0] % kShapes), rest);

  ballast::OpenOptions options;
  options.limits.max_pickle_nodes = 100'000;
  options.limits.max_expansion_bytes = 1 << 20;
  const auto bytes = std::as_bytes(std::span(file));
  try {
    const Checkpoint checkpoint = ballast::open_bytes({bytes.begin(), bytes.end()}, "<fuzz>", options);
    read_all(checkpoint);
    read_all(ballast::densify(checkpoint, options.limits));
  } catch (const Error&) {
  }
  return 0;
}
