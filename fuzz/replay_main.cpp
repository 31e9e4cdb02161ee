// Runs a fuzz target over known inputs: the files that it is given, and the files in the folders that it is given. It
// replaces libFuzzer's main, so that every compiler and every sanitizer can replay the corpus.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_under(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<char> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw fs::filesystem_error("cannot read", path, std::make_error_code(std::errc::io_error));
  return {std::istreambuf_iterator<char>(in), {}};
}

void replay(const fs::path& path) {
  const std::vector<char> bytes = read(path);
  // The buffer is exactly as large as the input, so that AddressSanitizer sees a read past its end.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  fs::path current;
  try {
    for (int i = 1; i < argc; ++i) {
      for (const fs::path& path : inputs_under(argv[i])) {
        current = path;
        replay(path);
        ++count;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", current.c_str(), error.what());
    return 1;
  }
  // A replay without inputs would always pass without anybody noticing.
  if (count == 0) {
    std::fprintf(stderr, "no inputs: give the folder that make_corpus wrote\n");
    return 1;
  }
  std::printf("%zu inputs replayed\n", count);
}
