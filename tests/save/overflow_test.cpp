// Values beyond the dtypes of a file are counted and reported, and refused by a strict save.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

using test::TempDir;

constexpr std::size_t kCount = 3'000'000;  // more than a buffer, so that several threads have work

Tensor floats(const std::vector<float>& values, std::size_t count = kCount) {
  std::vector<float> all(count, 0.25F);
  for (std::size_t i = 0; i < values.size(); ++i) all[i * (count / values.size())] = values[i];
  return Tensor::from_values<float>(DType::f32, {count / 64, 64}, all);
}

Checkpoint some_tensors() {
  Checkpoint checkpoint;
  checkpoint.tensors.insert("small", floats({1, 2, 3}));
  checkpoint.tensors.insert("large", floats({70000, -1e30F, 1e20F, INFINITY, NAN, 65519}));
  checkpoint.tensors.insert("other", floats({-66000}, 128));
  return checkpoint;
}

TEST(Overflows, AreCountedForEachTensorInEveryFormatWithAnyNumberOfThreads) {
  const TempDir folder;
  for (const unsigned threads : {1U, 2U, 5U}) {
    for (const char* name : {"out.safetensors", "out.pt", "out.gguf"}) {
      SaveOptions options{.overwrite = true, .durable = false, .threads = threads};
      options.memory_bytes = 1 << 20;
      const SaveReport report = save(cast(some_tensors(), DType::f16), folder / name, options);
      ASSERT_EQ(report.overflows.size(), 2u) << name;
      std::uint64_t total = 0;
      for (const auto& [tensor, dtype, overflows] : report.overflows) {
        total += overflows.count;
        EXPECT_EQ(dtype, DType::f16);
        EXPECT_EQ(overflows.largest, tensor == "large" ? static_cast<double>(-1e30F) : -66000);
      }
      EXPECT_EQ(total, 4u) << name << " " << threads;
      ASSERT_EQ(report.notes.size(), 1u);
      EXPECT_EQ(report.notes[0].text,
                "4 values of 2 tensors are beyond F16 and were written as infinite, the largest -1e+30: "
                "\"large\" (3, -1e+30), \"other\" (1, -66000)");
    }
  }
}

TEST(Overflows, StopAStrictSaveBeforeAnythingIsPublished) {
  const TempDir folder;
  SaveOptions options{.strict = true, .durable = false};
  EXPECT_ERROR(save(cast(some_tensors(), DType::f16), folder / "out.safetensors", options), Errc::mismatch,
               "4 values of 2 tensors are beyond F16 and would be written as infinite");
  options.max_shard_bytes = kCount;
  EXPECT_ERROR(save(cast(some_tensors(), DType::f16), folder / "out.safetensors", options), Errc::mismatch,
               "beyond F16");
  EXPECT_TRUE(folder.names().empty());
  save(cast(some_tensors(), DType::bf16), folder / "out.safetensors", options);
}

TEST(Overflows, AreReportedForEachDtype) {
  const TempDir folder;
  const auto mixed = cast(some_tensors(), {{"large", DType::q8_0}, {"other", DType::f8_e4m3}, {"*", DType::f16}});
  Checkpoint finite = mixed;
  finite.tensors.replace("large", floats({1e30F}, 6400).to(DType::q8_0));
  const SaveReport report = save(finite, folder / "out.safetensors", {.raw_blocks = true, .durable = false});
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_TRUE(
      report.notes[0].text.starts_with("1 value of 1 tensor is beyond F8_E4M3 and was cut to its largest number"))
      << report.notes[0].text;
  EXPECT_TRUE(report.notes[1].text.starts_with("32 values of 1 tensor are beyond Q8_0 and were lost in blocks"))
      << report.notes[1].text;
}

TEST(Overflows, OfANarrowSumOfAnAdapterAreCounted) {
  const TempDir folder, adapter;
  adapter.write("adapter_config.json", R"({"peft_type":"LORA","r":1,"lora_alpha":1,"target_modules":["q"]})");
  Checkpoint lora;
  const std::vector<float> a(64, 300), b(1000, 250);
  lora.tensors.insert("base_model.model.q.lora_A.weight", Tensor::from_values<float>(DType::f32, {1, 64}, a));
  lora.tensors.insert("base_model.model.q.lora_B.weight", Tensor::from_values<float>(DType::f32, {1000, 1}, b));
  save(lora, adapter / "adapter_model.safetensors");
  Checkpoint base;
  base.tensors.insert("q.weight", floats({1}, 64'000).to(DType::f16).realize());
  const SaveReport report = save(merge(base, {load_adapter(adapter.path())}), folder / "out.safetensors");
  ASSERT_EQ(report.overflows.size(), 1u);
  EXPECT_EQ(report.overflows[0].overflows.count, 64'000u);
  EXPECT_NEAR(report.overflows[0].overflows.largest, 75'000, 1);
}

TEST(Overflows, OfARunThatWasStoppedAreCountedAgain) {
  const TempDir folder;
  Checkpoint source;
  for (const char* name : {"a", "b", "c"}) source.tensors.insert(name, floats({1e30F}, 640'000));
  save(source, folder / "source.safetensors", {.durable = false});
  SaveOptions options{.max_shard_bytes = 1'300'000, .durable = false, .threads = 1};
  const Checkpoint half = cast(open(folder / "source.safetensors"), DType::f16);
  const pid_t child = fork();
  if (child == 0) {
    options.progress = [](const ProgressState& state) {
      if (state.done_bytes >= 3'000'000) raise(SIGKILL);
      return true;
    };
    save(half, folder / "out.safetensors", options);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(save(half, folder / "out.safetensors", options).overflows.size(), 3u);
}

TEST(Overflows, OfATensorThatIsRealizedAreCountedForTheCaller) {
  const OverflowCounter counter;
  floats({1e30F, 2, -3e30F}).to(DType::f16).realize(4);
  EXPECT_EQ(counter.total().count, 2u);
  EXPECT_EQ(counter.total().largest, static_cast<double>(-3e30F));
  std::array<std::byte, 3> few;
  floats({1e30F}, 128).to(DType::f16).read(1, few);  // the first byte of the value is not read
  EXPECT_EQ(counter.total().count, 2u);
}

TEST(Encoding, NamesTheTensorTheFileAndTheValueThatIsNotFinite) {
  const TempDir folder;
  Checkpoint source;
  source.tensors.insert("fine", floats({1}, 128));
  std::vector<float> values(128, 1.0F);
  values[69] = NAN;
  source.tensors.insert("w", Tensor::from_values<float>(DType::f32, {2, 2, 32}, values));
  const std::string file = folder / "source.safetensors";
  save(source, file);
  EXPECT_ERROR(save(cast(open(file), DType::q4_0), folder / "out.gguf"), Errc::unsupported,
               file + ": tensor \"w\": the value at [1, 0, 5] is NaN, which cannot be encoded as Q4_0");
}

}  // namespace
}  // namespace ballast
