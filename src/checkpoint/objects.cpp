#include "checkpoint/objects.hpp"

#include "checkpoint/read_source.hpp"
#include "checkpoint/recognize/detect.hpp"
#include "formats/all.hpp"
#include "formats/archive/zip.hpp"
#include "formats/torch/format.hpp"
#include "formats/torch/read.hpp"

namespace ballast {

torch::Objects read_objects(const SourcePtr& source, const OpenOptions& options) {
  torch::Objects objects;
  const auto read_inside = [&](const SourcePtr& inside) { return read_source(inside, options, 1); };
  const torch::ReadOptions read{options.limits, options.safety, read_inside, &objects};
  const Recognized recognized = recognize(source, options.limits);
  if (recognized.format == &kZipArchive) {
    const archive::Zip zip = archive::read_zip(source, options.limits);
    if (torch::is_torch_zip(zip)) torch::read_zip(zip, read);
  } else if (recognized.format == &torch::kTar) {
    torch::read_tar(source, read);
  } else if (recognized.format == &torch::kStream) {
    torch::read_stream(source, read);
  }
  return objects;
}

}  // namespace ballast
