// Conversions of files on this disk: their speed against a plain copy of the same bytes, and the memory that they take.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "benchmarks.hpp"
#include "builders/torch_file.hpp"
#include "generate.hpp"

namespace ballast::bench {
namespace {

constexpr std::uint64_t kSmall = std::uint64_t{256} << 20, kLarge = std::uint64_t{4} << 30;
constexpr std::uint64_t kMatrixBytes = 8192 * 2 * 8192;  // 8192 x 8192 elements of 2 bytes

void write_bytes(const std::string& to, std::uint64_t size) {
  static const std::vector<char> buffer(4 << 20, 'x');
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  for (std::uint64_t done = 0; done < size; done += buffer.size()) {
    const auto n = std::min<std::uint64_t>(buffer.size(), size - done);
    if (::write(out, buffer.data(), n) != static_cast<ssize_t>(n)) break;
  }
  ::close(out);
}

// The bytes that every kind of input file is made from: a hole, or bytes that do not compress.
struct Material {
  std::string path;  // a safetensors file with one F32 tensor "w"

  Material(std::uint64_t bytes, bool is_hole) : path(scratch() + "/material.safetensors") {
    write_random(path, is_hole ? 0 : bytes);
    if (!is_hole) return;
    const std::string header =
        fmt::format(R"({{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", bytes / 4, bytes);
    const std::uint64_t length = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), 8) << header;
    file.close();
    std::filesystem::resize_file(path, 8 + header.size() + bytes);
  }
  ~Material() { std::filesystem::remove(path); }
  Material(const Material&) = delete;
  Material& operator=(const Material&) = delete;

  Tensor tensor() const { return ballast::open(path).at("w"); }
};

void save_quickly(const Checkpoint& checkpoint, const std::string& path) {
  save(checkpoint, path, {.overwrite = true, .durable = false});
}

void write_zip(const std::string& path, std::uint64_t bytes, bool is_hole) {
  save_quickly(ballast::open(Material(bytes, is_hole).path), path);
}

void write_stream(const std::string& path, std::uint64_t bytes, bool is_hole) {
  namespace py = test::py;
  const auto count = static_cast<std::int64_t>(bytes / 4);
  const Material material(bytes, is_hole);
  std::ofstream file(path, std::ios::binary);
  file << test::TorchStream()
              .object(py::dict({{"w", py::tensor(py::storage("Float", "0", count), 0, {count}, {1})}}))
              .record("0", bytes / 4, "")
              .text();
  if (!is_hole)
    file << std::ifstream(material.path, std::ios::binary)
                .seekg(-static_cast<std::streamoff>(bytes), std::ios::end)
                .rdbuf();
  const auto head = static_cast<std::uint64_t>(file.tellp());
  file.close();
  if (is_hole) std::filesystem::resize_file(path, head + bytes);
}

// Matrices that are stored column by column, as torch saves a transposed weight.
void write_strided(const std::string& path, std::uint64_t bytes, bool is_hole) {
  const Material material(bytes, is_hole);
  const Tensor all = material.tensor();
  Checkpoint checkpoint;
  for (std::uint64_t at = 0; at + kMatrixBytes <= bytes; at += kMatrixBytes) {
    checkpoint.tensors.insert(fmt::format("w{}", at / kMatrixBytes),
                              Tensor(DType::bf16, {8192, 8192}, all.storage(), all.offset() + at).transpose());
  }
  save_quickly(checkpoint, path);
}

// As many blocks as decode to this many bytes of BF16.
void write_gguf(const std::string& path, std::uint64_t bytes, bool is_hole) {
  const std::uint64_t rows = bytes / 2 / 4096, packed = rows * 4096 / 256 * 144;
  const Material material(packed, is_hole);
  const Tensor all = material.tensor();
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor(DType::q4_k, {rows, 4096}, all.storage(), all.offset()));
  save_quickly(checkpoint, path);
}

struct Conversion {
  const char* name;
  const char* file;
  void (*write)(const std::string& path, std::uint64_t bytes, bool is_hole);
  std::optional<DType> dtype;
  double share;        // the goal, as a share of a copy's speed
  double when_synced;  // the goal if both sync; 0 if there is none
};
constexpr Conversion kConversions[] = {
    {"torch zip to safetensors", "in.pt", write_zip, std::nullopt, 1.0, 0.9},
    {"legacy torch to safetensors", "in.bin", write_stream, std::nullopt, 0.9, 0},
    {"torch zip cast to BF16", "in.pt", write_zip, DType::bf16, 0.8, 0},
    {"transposed matrices of a torch zip to safetensors", "in.pt", write_strided, std::nullopt, 0.3, 0},
    {"GGUF Q4_K to BF16", "in.gguf", write_gguf, DType::bf16, 0.5, 0},
};

void convert(const Conversion& conversion, const std::string& from, const std::string& to, bool sync) {
  Checkpoint checkpoint = ballast::open(from);
  if (conversion.dtype) checkpoint = cast(std::move(checkpoint), *conversion.dtype);
  save(checkpoint, to, {.durable = sync});
}

void compare_with_copy(Report& report, const Conversion& conversion, const std::string& from, bool sync) {
  const std::string to = scratch() + "/out.safetensors", copy = scratch() + "/copy";
  const bool is_gguf = conversion.write == write_gguf;
  const std::string rival = is_gguf ? "writing as many bytes" : sync ? "copy and sync" : "copy";
  const auto remove = [&] {
    std::filesystem::remove(to);
    std::filesystem::remove(copy);
  };
  const auto ours = [&] { convert(conversion, from, to, sync); };
  const auto theirs = [&] { is_gguf ? write_bytes(copy, kSmall) : copy_file(from, copy, sync); };
  report.add(fmt::format("{}{} / {}", conversion.name, sync ? ", synced" : "", rival),
             compare({ours, remove}, {theirs, remove}, 15), Goal::speed_at_least,
             sync ? conversion.when_synced : conversion.share);
  remove();
}

}  // namespace

void bench_convert(Report& report) {
  for (const Conversion& conversion : kConversions) {
    const std::string from = scratch() + "/" + conversion.file;
    if (report.wants(std::string(conversion.name) + " / copy and sync, writing as many bytes")) {
      conversion.write(from, kSmall, /*is_hole=*/false);
      compare_with_copy(report, conversion, from, /*sync=*/false);
      if (conversion.when_synced != 0) compare_with_copy(report, conversion, from, /*sync=*/true);
    }
    for (const std::uint64_t size : {kSmall, kLarge}) {
      const std::string row = fmt::format("memory of {}, {} MiB", conversion.name, size >> 20);
      if (!report.wants(row)) continue;
      conversion.write(from, size, /*is_hole=*/true);
      const std::string to = scratch() + "/out.safetensors";
      report.add_value(row, peak_anonymous([&] { convert(conversion, from, to, /*sync=*/false); }), 96, "MiB");
      std::filesystem::remove(to);
    }
    std::filesystem::remove(from);
  }
}

}  // namespace ballast::bench
