// Stands in for the command to test the writing of files alone: copy_file convert IN OUT [--force] [--no-sync].
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include <ballast/error.hpp>
#include <ballast/source.hpp>

#include "io/sink.hpp"

namespace {

void copy(const std::string& in, const std::string& out, const ballast::io::OutputOptions& options) {
  constexpr std::uint64_t kPiece = 64 << 10;  // so that there are several writes to fail
  const auto source = ballast::file_source(in);
  const auto sink = ballast::io::create_file(out, options);
  sink->reserve(source->size_bytes());
  const auto bytes = source->mapped();
  for (std::size_t done = 0; done < bytes.size(); done += kPiece)
    sink->write_at(done, bytes.subspan(done, std::min<std::size_t>(kPiece, bytes.size() - done)));
  source->check_unchanged();
  sink->commit();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return 2;
  ballast::io::OutputOptions options;
  for (int i = 4; i < argc; ++i) {
    if (std::strcmp(argv[i], "--force") == 0) options.overwrite = true;
    if (std::strcmp(argv[i], "--no-sync") == 0) options.durable = false;
  }
  copy(argv[2], argv[3], options);
  return 0;
} catch (const ballast::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return ballast::info(error.code()).exit_code;
}
