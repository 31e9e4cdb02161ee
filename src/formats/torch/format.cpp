#include "formats/torch/format.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "formats/archive/tar.hpp"
#include "formats/torch/layout.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/scan.hpp"

namespace ballast::torch {
namespace {

// Hugging Face's name comes first.
constexpr std::array kEndings = {Ending{".bin", "pytorch_model.bin"}, Ending{".pt", "model.pt"},
                                 Ending{".pth", "model.pth"}, Ending{".ckpt", "model.ckpt"}};

ReadOptions read_options(const ReadContext& context) {
  return {context.options.limits, context.options.safety, context.read_file};
}

Checkpoint read_zip_file(const archive::Zip& zip, const ReadContext& context) {
  return read_zip(zip, read_options(context));
}

Checkpoint read_tar_file(const FileToRead& file, const ReadContext& context) {
  return read_tar(file.source, read_options(context));
}

bool begins_with_pickle(std::span<const std::byte> first) {
  return first.size() >= 2 && first[0] == std::byte{0x80} && first[1] >= std::byte{2} && first[1] <= std::byte{5};
}

// A pickle of protocol 0 or 1 has no magic: the file is one if it runs to its end. Few bytes can begin one.
std::shared_ptr<void> run_old_pickle(const SourcePtr& file, std::span<const std::byte> first, const Limits& limits) {
  constexpr std::string_view kFirstOpcodes = "(]})cIJKLMNFGSTUVXdliqp0";
  if (kFirstOpcodes.find(static_cast<char>(first[0])) == std::string_view::npos) return nullptr;
  try {
    return std::make_shared<FirstPickle>(run_first_pickle(file, limits));
  } catch (const Error& error) {
    // A file over a limit that the caller set may be a pickle all the same.
    const bool may_be_one = error.code() == Errc::limit && limits != Limits{};
    if (may_be_one && run_old_pickle(file, first, {})) throw;
    return nullptr;
  }
}

Checkpoint read_stream_file(const FileToRead& file, const ReadContext& context) {
  if (!file.begun) return read_stream(file.source, read_options(context));
  return read_stream(std::move(*std::static_pointer_cast<FirstPickle>(file.begun)), read_options(context));
}

}  // namespace

constinit const FileFormat kZip = {
    .name = "PyTorch",
    .bytes = "a zip archive",
    .is_in = is_torch_zip,
    .read_zip = read_zip_file,
    .numbers_in = storage_members,
    .endings = kEndings,
    .format = Format::torch_zip,
    .written = "a torch state dict",
    .layouts = layouts,
    .keeps = {.quantized = true},
};

constinit const FileFormat kStream = {
    .name = "PyTorch",
    .bytes = "a pickle",
    .begins = begins_with_pickle,
    .is_short_magic = true,
    .claim = run_old_pickle,
    .read = read_stream_file,
    .scan = scan_stream,
};

constinit const FileFormat kTar = {
    .name = "PyTorch",
    .bytes = "a tar archive",
    .begins = archive::looks_like_tar,
    .holds_files = true,
    .read = read_tar_file,
    .scan = scan_tar,
};

}  // namespace ballast::torch
