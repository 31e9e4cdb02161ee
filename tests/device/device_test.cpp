// Devices by their names, and tensors on a real OpenCL device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <ballast/ballast.hpp>

#include "support/expect_error.hpp"
#include "support/fake_storages.hpp"
#include "support/opencl_device.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::bytes_of;
using test::OnOpenCl;
using test::some_bytes;
using test::some_tensor;

TEST(Device, HasOneNameEach) {
  for (const char* name : {"cpu", "meta", "opencl:0", "opencl:12", "cuda:0", "cuda:3"})
    EXPECT_EQ(to_string(Device(name)), name);
  EXPECT_EQ(Device("cuda"), Device(Device::Kind::cuda, 0));
  EXPECT_EQ(to_string(Device("opencl")), "opencl:0");
  EXPECT_NE(Device("cuda:1"), Device("cuda:0"));
}

TEST(Device, RefusesTextThatIsAlmostAName) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda:1 ", " cuda:1", "cuda:1:2",
                           "Cuda", "cuda0", "cuda:99999999999", "cpu:0", "meta:0", "opencl:x"})
    EXPECT_ERROR(Device(name), Errc::invalid_argument, "is no device") << name;
  EXPECT_ERROR(Device("mps"), Errc::unsupported, "cannot place tensors on \"mps\"");
  EXPECT_HINT(Device("gpu"), "cpu, meta, opencl:N, cuda:N");
}

TEST(DevicePlace, IsTheCpuForBytesInMemoryAndMetaForNoBytes) {
  const Tensor tensor = some_tensor(8, 1);
  EXPECT_EQ(place_of(tensor).device, Device("cpu"));
  EXPECT_EQ(place_of(tensor).handle, 0u);
  const Tensor shape = tensor.to("meta");
  EXPECT_EQ(place_of(shape).device, Device("meta"));
  EXPECT_EQ(shape.shape(), tensor.shape());
  EXPECT_EQ(tensor.to("cpu").storage(), tensor.storage());
}

TEST_F(OnOpenCl, TensorsComeBackBitByBit) {
  for (const std::size_t size : {1u, 4097u, (4u << 20) + 1, 9u << 20}) {
    const Tensor tensor = some_tensor(size, 7);
    const Tensor there = tensor.to("opencl");
    EXPECT_EQ(place_of(there).device, Device("opencl:0"));
    EXPECT_NE(place_of(there).handle, 0u);
    EXPECT_FALSE(there.is_mapped());
    EXPECT_TRUE(bytes_of(there) == bytes_of(tensor)) << size;
    EXPECT_TRUE(bytes_of(there.to("cpu")) == bytes_of(tensor));
    EXPECT_EQ(there.to("opencl:0").storage(), there.storage()) << "it is there already";
  }
}

TEST_F(OnOpenCl, ViewsAndCastsOfTensorsThereWorkAsElsewhere) {
  const Tensor tensor = Tensor::from_values<float>(DType::f32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor there = tensor.transpose().to("opencl");
  EXPECT_EQ(there.shape(), (Shape{3, 2}));
  EXPECT_EQ(bytes_of(there), bytes_of(tensor.transpose())) << "contiguous there";
  const Tensor row = there.slice(parse_slice("1"));
  EXPECT_EQ(place_of(row).handle, place_of(there).handle);
  EXPECT_EQ(place_of(row).offset, 8u);
  EXPECT_EQ(bytes_of(row), bytes_of(tensor.transpose().slice(parse_slice("1"))));
  EXPECT_EQ(bytes_of(there.to(DType::bf16)), bytes_of(tensor.transpose().to(DType::bf16)));
  EXPECT_ERROR(there.bytes(), Errc::unsupported, "made when they are read");
  const Tensor none = Tensor(DType::f32, {0, 4}, nullptr).to("opencl");
  EXPECT_EQ(place_of(none).device, Device("opencl"));
}

// Does what a caller does who knows OpenCL: asks the buffer for its size, through the loader of the system.
TEST_F(OnOpenCl, TheHandleIsABufferOfTheTensorsSize) {
  const Tensor there = some_tensor(12'345, 3).to("opencl");
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr);
  using GetInfo = int(void*, unsigned, std::size_t, void*, std::size_t*);
  auto* const get_info = reinterpret_cast<GetInfo*>(dlsym(library, "clGetMemObjectInfo"));
  std::size_t size = 0;
  constexpr unsigned kMemSize = 0x1102;
  EXPECT_EQ(get_info(reinterpret_cast<void*>(place_of(there).handle), kMemSize, sizeof size, &size, nullptr), 0);
  EXPECT_EQ(size, 12'345u);
}

TEST_F(OnOpenCl, ATensorThatCannotBeReadFailsAndTheNextWorks) {
  EXPECT_ERROR(Tensor(DType::u8, {1 << 20}, meta_storage(1 << 20)).to("opencl"), Errc::unsupported, "no data");
  EXPECT_TRUE(bytes_of(some_tensor(1 << 20, 2).to("opencl")) == some_bytes(1 << 20, 2));
}

TEST_F(OnOpenCl, SaysHowManyDevicesThereAre) {
  const unsigned count = device_count(Device::Kind::opencl);
  EXPECT_ERROR(some_tensor(1, 1).to(Device(Device::Kind::opencl, count)), Errc::unsupported,
               "this machine has " + std::to_string(count) + " OpenCL device");
}

}  // namespace
}  // namespace ballast
