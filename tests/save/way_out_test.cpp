// Every dtype that a format cannot hold is refused with a hint that works.
#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

Checkpoint one_of(DType dtype) {
  const DTypeInfo& type = info(dtype);
  const std::vector<std::byte> bytes(std::size_t{2} * type.block_bytes * 16);
  Checkpoint checkpoint;
  checkpoint.tensors.insert("w", Tensor::from_bytes(dtype, {2, std::uint64_t{type.block_elements} * 16}, bytes));
  return checkpoint;
}

TEST(WayOut, OfEveryDtypeThatAFormatCannotHoldWorks) {
  const test::TempDir folder;
  const SaveOptions options{.overwrite = true, .durable = false};
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.kind == DTypeKind::quantized) continue;  // these are torch's own, which come with a scale
    for (const char* name : {"out.safetensors", "out.pt", "out.gguf"}) {
      const auto error = test::error_of([&] { save(one_of(type.dtype), folder / name, options); });
      if (!error) continue;
      EXPECT_EQ(error->code(), Errc::unsupported) << type.name << " " << name;
      const std::string hint = error->hint().text();
      const auto says = [&](std::string_view what) { return hint.find(what) != std::string::npos; };
      EXPECT_TRUE(says("cast()") || says(".pt")) << type.name << " " << name << ": " << hint;
      if (says("cast()")) save(cast(one_of(type.dtype), DType::f32), folder / name, options);
      if (says(".pt")) save(one_of(type.dtype), folder / "way_out.pt", options);
      if (says(".safetensors")) save(one_of(type.dtype), folder / "way_out.safetensors", options);
    }
  }
}

}  // namespace
}  // namespace ballast
