// Folders of folders: pipelines of diffusers, and repositories in the Hub's cache.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <ballast/model_info.hpp>
#include <ballast/open.hpp>
#include <ballast/verify.hpp>

#include "builders/safetensors_file.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsFile;
using test::TempDir;

constexpr const char* kTwoParts = R"({"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.30.0",
    "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"],
    "scheduler": ["diffusers", "DDIMScheduler"], "safety_checker": [null, null], "requires_safety_checker": true})";

void put_part(const TempDir& folder, const std::string& part, const std::string& tensor,
              const std::string& file = "diffusion_pytorch_model.safetensors") {
  fs::create_directories(fs::path(folder.path()) / part);
  SafetensorsFile().tensor(tensor, "U8", {2}).write(folder, part + "/" + file);
}

std::vector<std::string> names_in(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : checkpoint) names.emplace_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Pipeline, IsOneCheckpointWithTheNamesOfItsPartsBeforeThoseOfTheTensors) {
  const TempDir folder;
  folder.write("model_index.json", kTwoParts);
  put_part(folder, "unet", "w");
  put_part(folder, "vae", "w");
  const Checkpoint all = open(folder.path());
  EXPECT_EQ(names_in(all), (Names{"unet.w", "vae.w"}));
  ASSERT_EQ(all.roots.size(), 2u);
  EXPECT_EQ(all.files.size(), 2u);
  EXPECT_EQ(names_in(open(folder.path(), {.root = "vae"})), Names{"w"});
  EXPECT_ERROR(open(folder.path(), {.root = "va"}), Errc::not_found, "no tensor lies below \"va\"");
  const ModelInfo model = model_info(all);
  EXPECT_EQ(model.class_name, "StableDiffusionPipeline");
  ASSERT_EQ(model.parts.size(), 2u);
  EXPECT_EQ(model.parts[0], std::pair(std::string("unet"), std::string("UNet2DConditionModel")));
}

TEST(Pipeline, SaysWhichModelsHaveNoWeights) {
  const TempDir folder;
  folder.write("model_index.json", kTwoParts);
  put_part(folder, "unet", "w");
  fs::create_directories(fs::path(folder.path()) / "vae");
  folder.write("vae/config.json", "{}");
  const Checkpoint all = open(folder.path());
  EXPECT_EQ(names_in(all), Names{"unet.w"});
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(all.notes[0].text, "parts without weights: \"vae\"");
}

TEST(Pipeline, TakesTheVariantOfThePartsThatHaveIt) {
  const TempDir folder;
  folder.write("model_index.json", kTwoParts);
  put_part(folder, "unet", "half", "diffusion_pytorch_model.fp16.safetensors");
  put_part(folder, "unet", "whole");
  put_part(folder, "vae", "whole");
  const Checkpoint all = open(folder.path(), {.variant = "fp16"});
  EXPECT_EQ(names_in(all), (Names{"unet.half", "vae.whole"}));
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(all.notes[0].text, "parts without files of the variant \"fp16\", of which the others are taken: \"vae\"");
  EXPECT_ERROR(open(folder.path(), {.variant = "int8"}), Errc::not_found,
               "no part of the pipeline has files of the variant \"int8\"");
}

TEST(Pipeline, GivesWayToACheckpointInTheFolderItself) {
  const TempDir folder;
  folder.write("model_index.json", kTwoParts);
  put_part(folder, "unet", "w");
  SafetensorsFile().tensor("own", "U8", {2}).write(folder, "model.safetensors");
  EXPECT_EQ(names_in(open(folder.path())), Names{"own"});
}

TEST(Pipeline, RefusesWhatIsNone) {
  const TempDir folder;
  for (const auto& [index, code, message] :
       {std::tuple("{", Errc::malformed, "ends early"), std::tuple("[]", Errc::malformed, "not a JSON object"),
        std::tuple("{}", Errc::not_found, "no part of the pipeline has weights"),
        std::tuple(R"({"../x": ["a", "B"]})", Errc::unsafe, "no folder in it"),
        std::tuple(R"({"..": ["a", "B"]})", Errc::unsafe, "no folder in it")}) {
    folder.write("model_index.json", index);
    EXPECT_ERROR(open(folder.path()), code, message);
  }
}

TEST(Pipeline, IsVerifiedPartByPart) {
  const TempDir folder;
  folder.write("model_index.json", kTwoParts);
  put_part(folder, "unet", "w");
  put_part(folder, "vae", "w", "a.safetensors");
  EXPECT_TRUE(verify(folder.path()).findings.empty());
  folder.write("vae/model.safetensors.index.json", R"({"weight_map": {"w": "a.safetensors", "x": "a.safetensors"}})");
  const VerifyReport report = verify(folder.path());
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, "tensor \"x\" is not in \"a.safetensors\"");
}

TEST(HubCacheFolder, OpensTheSnapshotOfMain) {
  const TempDir folder;
  const std::string commits[] = {std::string(40, 'a'), std::string(40, 'b')};
  put_part(folder, "snapshots/" + commits[0], "old", "model.safetensors");
  EXPECT_ERROR(open(folder.path()), Errc::not_found, "no checkpoint");
  fs::create_directories(fs::path(folder.path()) / "refs");
  EXPECT_EQ(names_in(open(folder.path())), Names{"old"});
  put_part(folder, "snapshots/" + commits[1], "new", "model.safetensors");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "several snapshots");
  folder.write("refs/main", commits[1] + "\n");
  EXPECT_EQ(names_in(open(folder.path())), Names{"new"});
  EXPECT_EQ(choices_in(folder.path()).size(), 1u);
  folder.write("refs/main", "../../elsewhere");
  EXPECT_ERROR(open(folder.path()), Errc::invalid_argument, "several snapshots");
  EXPECT_EQ(choices_in(folder.path()),
            (std::vector{folder / ("snapshots/" + commits[0]), folder / ("snapshots/" + commits[1])}));
}

TEST(HubCacheFolder, NeedsNoBranchIfItWasFetchedByACommit) {
  const TempDir folder;
  put_part(folder, "snapshots/" + std::string(40, 'a'), "w", "model.safetensors");
  fs::create_directories(fs::path(folder.path()) / "blobs");
  EXPECT_EQ(names_in(open(folder.path())), Names{"w"});
}

TEST(Folder, SaysWhatThereIsToChooseFrom) {
  const TempDir folder;
  const auto name = [&](const std::string& file) { return folder.path() + "/" + file; };
  SafetensorsFile().tensor("w", "U8", {2}).write(folder, "a.safetensors");
  SafetensorsFile().tensor("w", "U8", {2}).write(folder, "b-00001-of-00002.safetensors");
  SafetensorsFile().tensor("x", "U8", {2}).write(folder, "b-00002-of-00002.safetensors");
  EXPECT_EQ(choices_in(folder.path()), (Names{name("a.safetensors"), name("b-00001-of-00002.safetensors")}));
  EXPECT_EQ(choices_in(name("a.safetensors")), Names{});
}

}  // namespace
}  // namespace ballast
