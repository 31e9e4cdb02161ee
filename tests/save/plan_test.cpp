// A plan says what a save would do, before it does anything.
#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"

namespace ballast {
namespace {

using test::some_bytes;

Tensor bytes(std::uint64_t size) { return Tensor(DType::u8, {size}, memory_storage(some_bytes(size, 1))); }

Checkpoint tied() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("embed", bytes(60));
  checkpoint.tensors.insert("layer", bytes(90));
  checkpoint.tensors.insert("last", bytes(30));
  checkpoint.tensors.insert("head", checkpoint.at("embed"));
  return checkpoint;
}

TEST(Plan, TakesTheFormatFromTheEnding) {
  for (const char* name : {"m.pt", "m.pth", "m.bin", "m.ckpt"})
    EXPECT_TRUE(plan_save(tied(), name).files.at(0).finish) << name;
  EXPECT_FALSE(plan_save(tied(), "m.safetensors").files.at(0).finish);
  EXPECT_ERROR(plan_save(tied(), "m.onnx"), Errc::unsupported,
               "cannot tell from its ending in which format \"m.onnx\"");
  for (const char* ending : {".safetensors", ".pt", ".pth", ".bin", ".ckpt"})
    EXPECT_HINT(plan_save(tied(), "m.onnx"), ending);
}

TEST(Plan, KeepsTiedTensorsInOneShardOfATorchFile) {
  SaveOptions options;
  options.max_shard_bytes = 100;
  const SavePlan plan = plan_save(tied(), "folder/pytorch_model.bin", options);
  ASSERT_EQ(plan.files.size(), 4u);
  EXPECT_EQ(plan.files[0].path, "folder/pytorch_model-00001-of-00003.bin");
  EXPECT_EQ(plan.files[3].path, "folder/pytorch_model.bin.index.json");
  EXPECT_EQ(plan.files[0].tensors, 2u);
  EXPECT_EQ(plan.files[0].items.size(), 1u);
  const auto& index = plan.files[3].head;
  const std::string_view text(reinterpret_cast<const char*>(index.data()), index.size());
  EXPECT_NE(text.find("\"total_size\": 180"), text.npos) << text;
  EXPECT_NE(text.find("\"head\": \"pytorch_model-00001-of-00003.bin\""), text.npos) << text;
}

TEST(Plan, SaysThatATorchFileCannotHoldMetadata) {
  Checkpoint checkpoint = tied();
  checkpoint.metadata = {{"format", "pt"}, {"head", "embed"}};
  checkpoint.aliases = {{"head", "embed"}};
  EXPECT_TRUE(plan_save(checkpoint, "m.pt").notes.empty());
  checkpoint.metadata["author"] = "me";
  const SavePlan plan = plan_save(checkpoint, "m.pt");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0].text, "a torch state dict has no place for metadata; left out: \"author\"");
  EXPECT_TRUE(plan_save(checkpoint, "m.safetensors").notes.empty());
}

TEST(Plan, HasItsNotesInTheReport) {
  test::TempDir folder;
  Checkpoint checkpoint = tied();
  checkpoint.metadata["author"] = "me";
  EXPECT_EQ(save(checkpoint, folder / "m.pt").notes.size(), 1u);
}

TEST(Plan, KeepsAliasesTiedInATorchFile) {
  Checkpoint checkpoint = tied();
  checkpoint.aliases = {{"head", "embed"}};
  const SavePlan plan = plan_save(checkpoint, "m.pt");
  EXPECT_EQ(plan.files[0].tensors, 4u);
  EXPECT_EQ(plan.files[0].items.size(), 3u);
  EXPECT_EQ(plan_save(checkpoint, "m.safetensors").files[0].tensors, 3u);
}

TEST(Plan, RefusesACheckpointThatNamesSomethingDangerous) {
  Checkpoint checkpoint = tied();
  checkpoint.target = "evil.pt";
  checkpoint.dangerous.push_back({"os", "system", 37, "archive/data.pkl", Verdict::dangerous, "runs shell commands"});
  for (const char* out : {"m.safetensors", "m.pt"}) {
    EXPECT_ERROR_AT(plan_save(checkpoint, out), Errc::unsafe,
                    "evil.pt!/archive/data.pkl: names \"os.system\", which runs shell commands", 37);
    EXPECT_HINT(plan_save(checkpoint, out), "allow_dangerous");
    SaveOptions options;
    options.allow_dangerous = true;
    EXPECT_EQ(plan_save(checkpoint, out, options).files.size(), 1u);
  }
}

}  // namespace
}  // namespace ballast
