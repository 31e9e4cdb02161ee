// Tensors on a CUDA device, through a driver of our own that has no GPU behind it: fake_cuda.cpp.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "builders/temp_dir.hpp"
#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::some_bytes;
using test::some_tensor;

// Whoever asks for libcuda.so.1 from now on gets the library of that name that is loaded already.
class OnFakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(BALLAST_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    ASSERT_EQ(in_use(), 0u);
  }
  void TearDown() override { EXPECT_EQ(in_use(), 0u) << "memory, streams and contexts were given back"; }

  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  std::size_t in_use() const { return find<std::size_t()>("fake_cuda_in_use")(); }

  void* library_ = nullptr;
};

TEST_F(OnFakeCuda, TensorsComeBackBitByBit) {
  EXPECT_EQ(device_count(Device::Kind::cuda), 2u);
  for (const std::size_t size : {1u, 4097u, (4u << 20) + 1, 17u << 20}) {
    const Tensor there = some_tensor(size, 5).to("cuda:1");
    EXPECT_EQ(place_of(there).device, Device("cuda:1"));
    EXPECT_NE(place_of(there).handle, 0u);
    EXPECT_TRUE(bytes_of(there) == some_bytes(size, 5)) << size;
    EXPECT_TRUE(bytes_of(there.slice(parse_slice("1:"))) == bytes_of(some_tensor(size, 5).slice(parse_slice("1:"))));
  }
}

TEST_F(OnFakeCuda, SeveralCopiesAreUnderWayAtOnce) {
  const Tensor there = some_tensor(24u << 20, 9).to("cuda", 3);
  EXPECT_GE(find<std::size_t()>("fake_cuda_most_in_flight")(), 2u);
  EXPECT_TRUE(bytes_of(there) == some_bytes(24u << 20, 9));
}

TEST_F(OnFakeCuda, TensorsGoFromOneDeviceToAnother) {
  const Tensor second = some_tensor(5 << 20, 4).to("cuda:0").to("cuda:1");
  EXPECT_EQ(place_of(second).device, Device("cuda:1"));
  EXPECT_TRUE(bytes_of(second) == some_bytes(5 << 20, 4));
}

TEST_F(OnFakeCuda, SaysWhatDoesNotFitBeforeItReads) {
  const Tensor unreadable(DType::u8, {100 << 20}, meta_storage(100 << 20));
  EXPECT_ERROR(unreadable.to("cuda:0"), Errc::limit, "cuda:0 has no room for 105 MB");
}

TEST_F(OnFakeCuda, SaysWhatTheDriverSays) {
  find<void(int)>("fake_cuda_fail_copy")(2);
  EXPECT_ERROR(some_tensor(20 << 20, 1).to("cuda:0"), Errc::io,
               "cuda:0 cannot be written: unspecified launch failure (CUDA error 719)");
}

TEST_F(OnFakeCuda, SaysHowManyDevicesThereAre) {
  EXPECT_ERROR(some_tensor(1, 1).to("cuda:2"), Errc::unsupported,
               "there is no device cuda:2: this machine has 2 CUDA devices");
}

TEST_F(OnFakeCuda, LoadsAndPlacesByName) {
  const test::TempDir folder;
  Checkpoint checkpoint;
  for (int i = 0; i < 20; ++i)
    checkpoint.tensors.insert("layers." + std::to_string(i) + ".w",
                              some_tensor(100'000 + static_cast<std::size_t>(i), 1));
  save(checkpoint, folder / "m.safetensors");
  const StateDict state =
      load(folder / "m.safetensors", {.device = "cuda:0", .map_location = {{"layers.1?.*", "cuda:1"}}});
  for (const auto& [name, tensor] : state) {
    EXPECT_EQ(place_of(tensor).device, name.size() == std::string("layers.10.w").size() ? "cuda:1" : "cuda:0") << name;
    EXPECT_TRUE(bytes_of(tensor) == bytes_of(checkpoint.at(name))) << name;
  }
}

}  // namespace
}  // namespace ballast
