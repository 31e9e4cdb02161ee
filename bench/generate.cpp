#include "generate.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <ballast/ballast.hpp>

#include "harness.hpp"
#include "io/posix.hpp"

namespace ballast::bench {
namespace {

struct Scratch {
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ballast-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

std::string with_length(std::string header) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &size, 8);
  return file + header;
}

}  // namespace

const std::string& scratch() {
  static const Scratch folder;
  return folder.path;
}

std::string model_tensor_name(std::size_t number) {
  static constexpr std::array kParts = {
      "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
      "self_attn.o_proj.weight", "mlp.gate_proj.weight",    "mlp.up_proj.weight",
      "mlp.down_proj.weight",    "input_layernorm.weight",  "post_attention_layernorm.weight",
  };
  return fmt::format("model.layers.{}.{}", number / kParts.size(), kParts[number % kParts.size()]);
}

std::uint64_t write_model(const std::string& path, std::size_t first, std::size_t count, std::uint64_t tensor_bytes) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < count; ++i, offset += tensor_bytes) {
    header += fmt::format(R"(,"{}":{{"dtype":"BF16","shape":[{},64],"data_offsets":[{},{}]}})",
                          model_tensor_name(first + i), tensor_bytes / 128, offset, offset + tensor_bytes);
  }
  const std::string head = with_length(header + "}");
  std::ofstream(path, std::ios::binary) << head;
  std::filesystem::resize_file(path, head.size() + offset);
  return head.size() - 8;
}

void open_and_list(const std::string& path) {
  const Checkpoint checkpoint = open(path);
  std::uint64_t seen = 0;
  for (const auto& [name, tensor] : checkpoint) seen += name.size() + tensor.nbytes();
  keep(seen);
}

void read_once(const std::string& path, unsigned threads) {
  // A buffer begins a page, as that of cat does: at other places, the copies of the system took ten times as long on
  // some processors.
  struct alignas(4096) Buffer {
    std::array<char, std::size_t{128} << 10> bytes;
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto size = static_cast<std::size_t>(::lseek(file, 0, SEEK_END));
  const auto read_part = [&](std::size_t first, std::size_t end) {
    const auto buffer = std::make_unique<Buffer>();
    while (first < end) {
      const std::size_t wanted = std::min(buffer->bytes.size(), end - first);
      const ssize_t n = ::pread(file, buffer->bytes.data(), wanted, static_cast<off_t>(first));
      if (n <= 0) return;
      keep(buffer->bytes);
      first += static_cast<std::size_t>(n);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(read_part, size * i / threads, size * (i + 1) / threads);
  read_part(0, size / threads);
  for (std::thread& other : others) other.join();
  ::close(file);
}

void malloc_and_read(const std::string& path) {
  const std::size_t size = std::filesystem::file_size(path);
  const io::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto* const memory = static_cast<std::byte*>(std::malloc(size));
  std::size_t done = 0;
  if (io::read_all_at(file.get(), 0, {memory, size}, done) != 0 || done != size) std::abort();
  keep(*memory);
  std::free(memory);
}

void write_random(const std::string& path, std::uint64_t tensor_bytes) {
  const std::string head = with_length(
      fmt::format(R"({{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", tensor_bytes / 4, tensor_bytes));
  std::ofstream file(path, std::ios::binary);
  file << head;
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> block(1 << 17);
  for (std::uint64_t done = 0; done < tensor_bytes; done += block.size() * 8) {
    for (auto& word : block) word = random();
    file.write(reinterpret_cast<const char*>(block.data()),
               static_cast<std::streamsize>(std::min<std::uint64_t>(block.size() * 8, tensor_bytes - done)));
  }
}

void copy_file(const std::string& from, const std::string& to, bool sync) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  std::vector<char> buffer(128 * 1024);
  for (;;) {
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n <= 0 || ::write(out, buffer.data(), static_cast<std::size_t>(n)) != n) break;
  }
  if (sync) ::fsync(out);
  ::close(in);
  ::close(out);
}

}  // namespace ballast::bench
