// Every function by which PyTorch rebuilds a tensor, with arguments that are right and with arguments that lie.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include <complex>

#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::integer;
using py::integers;
using py::Ops;
using py::rebuild;
using py::storage;
using test::raw;
using test::TorchZip;
using test::values_of;
using Floats = std::vector<float>;

const std::string kSix = raw<float>({0, 1, 2, 3, 4, 5});

// A file whose root is one object, with a storage "0" of six floats and a storage "1" of three int64.
TorchZip zip_of(const Ops& object) {
  TorchZip zip;
  zip.object(object).record("0", kSix).record("1", raw<std::int64_t>({0, 1, 2}));
  return zip;
}

Ops six() { return storage("Float", "0", 6); }
Ops three() { return storage("Long", "1", 3); }

Tensor tensor_in(const Ops& object) { return zip_of(object).open().at(""); }
Floats floats_in(const Ops& object) { return values_of<float>(tensor_in(object)); }

#define EXPECT_MALFORMED(object, text) EXPECT_ERROR(zip_of(object).open(), Errc::malformed, text)

TEST(TorchRebuild, MakesAViewOfAStorage) {
  EXPECT_EQ(floats_in(py::tensor(six(), 0, {2, 3}, {3, 1})), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(floats_in(py::tensor(six(), 0, {3, 2}, {1, 3})), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats_in(py::tensor(six(), 2, {2}, {3})), (Floats{2, 5}));
  EXPECT_EQ(floats_in(py::tensor(six(), 5, {}, {})), Floats{5});
  EXPECT_EQ(floats_in(py::tensor(six(), 1, {2, 2}, {0, 1})), (Floats{1, 2, 1, 2}));
  EXPECT_EQ(floats_in(py::tensor(six(), 0, {3, 2}, {1, 1})), (Floats{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(tensor_in(py::tensor(six(), 6, {0, 4}, {4, 1})).shape(), (Shape{0, 4}));
}

TEST(TorchRebuild, KnowsTheFirstVersionOfTheFunction) {
  EXPECT_EQ(floats_in(rebuild("_rebuild_tensor", {six(), integer(4), integers({2}), integers({1})})), (Floats{4, 5}));
}

TEST(TorchRebuild, TakesTheDtypeOfTheThirdVersionFromItsArgument) {
  const auto v3 = [](const Ops& dtype) {
    return rebuild("_rebuild_tensor_v3", {py::untyped_storage("0", 24), integer(1), integers({2}), integers({1}),
                                          py::boolean(false), py::ordered_dict(), dtype});
  };
  const Tensor tensor = tensor_in(v3(py::global("torch", "uint16")));
  EXPECT_EQ(tensor.dtype(), DType::u16);
  EXPECT_EQ(tensor.offset(), 2u);
  EXPECT_EQ(tensor_in(v3(py::global("torch", "float"))).dtype(), DType::f32);
}

TEST(TorchRebuild, LeavesOutATensorOfAnUnknownDtypeAndSaysSo) {
  const auto v3 = [](const Ops& dtype) {
    return rebuild("_rebuild_tensor_v3", {py::untyped_storage("0", 24), integer(0), integers({2}), integers({1}),
                                          py::boolean(false), py::ordered_dict(), dtype});
  };
  for (const Ops& dtype : {py::global("torch", "float3"), py::integer(3), py::global("builtins", "float32")}) {
    const Checkpoint checkpoint =
        zip_of(py::dict({{"odd", v3(dtype)}, {"plain", py::tensor(six(), 0, {1}, {1})}})).open();
    EXPECT_FALSE(checkpoint.contains("odd"));
    EXPECT_TRUE(checkpoint.contains("plain"));
    EXPECT_TRUE(test::has_note(checkpoint, "\"odd\" is left out"));
  }
  const Ops unknown = py::persistent(
      {py::text("storage"), py::global("torch", "OddStorage"), py::text("0"), py::text("cpu"), integer(6)});
  EXPECT_TRUE(test::has_note(zip_of(py::dict({{"odd", py::tensor(unknown, 0, {1}, {1})}})).open(),
                             "a storage of the unknown class \"OddStorage\""));
}

TEST(TorchRebuild, RefusesAViewThatReachesOutsideItsStorage) {
  EXPECT_MALFORMED(py::tensor(six(), 0, {7}, {1}), "reaches outside its storage of 24 bytes");
  EXPECT_MALFORMED(py::tensor(six(), 6, {1}, {1}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(six(), 7, {}, {}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(six(), 0, {2, 3}, {4, 1}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(six(), INT64_MAX, {1}, {1}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(six(), 0, {2}, {INT64_MAX}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(six(), 0, {INT64_MAX, 4}, {0, 1}), "");
}

TEST(TorchRebuild, RefusesANegativeNumber) {
  EXPECT_MALFORMED(py::tensor(six(), -1, {1}, {1}), "the offset of a tensor is -1");
  EXPECT_MALFORMED(py::tensor(six(), 0, {-1}, {1}), "the shape of a tensor holds -1");
  EXPECT_MALFORMED(py::tensor(six(), 5, {2}, {-1}), "the strides of a tensor holds -1");
  EXPECT_MALFORMED(py::tensor(storage("Float", "0", -6), 0, {1}, {1}), "the size of a storage is -6");
}

TEST(TorchRebuild, RefusesASizeThatOverflows) {
  // 0x4000000000000001 elements of 4 bytes are 4 bytes if the product wraps.
  EXPECT_MALFORMED(py::tensor(storage("Float", "0", 0x4000000000000001), 0, {1}, {1}), "does not fit 64 bits");
  EXPECT_MALFORMED(py::tensor(six(), 0, {0x4000000000000001}, {0}), "overflow");
  EXPECT_MALFORMED(py::tensor(six(), 0, {INT64_MAX, INT64_MAX, INT64_MAX}, {0, 0, 0}), "");
  EXPECT_MALFORMED(py::tensor(six(), 0, {3, INT64_MAX}, {INT64_MAX, 1}), "reaches outside");
}

TEST(TorchRebuild, RefusesShapesAndStridesThatDoNotGoTogether) {
  EXPECT_MALFORMED(py::tensor(six(), 0, {2, 3}, {1}), "differ in length");
  EXPECT_MALFORMED(py::tensor(six(), 0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1)),
                   "65 dimensions, more than the 64 allowed");
  EXPECT_EQ(tensor_in(py::tensor(six(), 0, std::vector<std::int64_t>(64, 1), std::vector<std::int64_t>(64, 1))).rank(),
            64u);
}

TEST(TorchRebuild, RefusesArgumentsOfAnotherKind) {
  const auto v2 = [](std::vector<Ops> arguments) { return rebuild("_rebuild_tensor_v2", arguments); };
  EXPECT_MALFORMED(v2({}), "takes 4 arguments, but has 0");
  EXPECT_MALFORMED(v2({six(), integer(0), integers({1})}), "takes 4 arguments, but has 3");
  EXPECT_MALFORMED(v2({py::text("0"), integer(0), integers({1}), integers({1})}), "the first argument is no storage");
  EXPECT_MALFORMED(v2({six(), py::text("0"), integers({1}), integers({1})}), "the offset of a tensor is no 64-bit");
  EXPECT_MALFORMED(v2({six(), integer(0), integer(1), integers({1})}), "the shape of a tensor is no tuple");
  EXPECT_MALFORMED(v2({six(), integer(0), integers({1}), py::tuple({py::real(1)})}), "something that is no integer");
  EXPECT_MALFORMED(py::global("torch._utils", "_rebuild_tensor_v2") + py::dict({{"a", integer(1)}}) + "R", "");
}

TEST(TorchRebuild, AcceptsATorchSizeInsteadOfATuple) {
  const Ops size = py::call("torch", "Size", {integers({2, 3})});
  EXPECT_EQ(tensor_in(rebuild("_rebuild_tensor_v2", {six(), integer(0), size, integers({3, 1})})).shape(),
            (Shape{2, 3}));
}

// The storage and its record both say how many elements there are: a contradiction could reach foreign memory.
TEST(TorchRebuild, RefusesAStorageOfAnotherSizeThanItsRecord) {
  EXPECT_MALFORMED(py::tensor(storage("Float", "0", 7), 0, {1}, {1}),
                   "has 28 bytes in the pickle, but its member has 24");
  EXPECT_MALFORMED(py::tensor(storage("Float", "0", 5), 0, {1}, {1}),
                   "has 20 bytes in the pickle, but its member has 24");
  EXPECT_MALFORMED(py::tensor(storage("Double", "0", 6), 0, {1}, {1}), "has 48 bytes in the pickle");
  EXPECT_MALFORMED(py::tensor(storage("Float", "9", 6), 0, {1}, {1}), "has no member \"archive/data/9\"");
  EXPECT_MALFORMED(py::tensor(storage("Float", "../0", 6), 0, {1}, {1}), "has no member");
  for (const std::int64_t nearly : {23, 25})
    EXPECT_MALFORMED(py::tensor(storage("Byte", "0", nearly), 0, {1}, {1}),
                     "bytes in the pickle, but its member has 24");
  EXPECT_MALFORMED(py::tensor(storage("Byte", "9", 1), 0, {1}, {1}), "has no member \"archive/data/9\"");
}

TEST(TorchRebuild, NeedsNoRecordForAStorageWithoutElements) {
  EXPECT_EQ(tensor_in(py::tensor(storage("Float", "9", 0), 0, {0}, {1})).shape(), (Shape{0}));
  EXPECT_MALFORMED(py::tensor(storage("Float", "9", 0), 0, {1}, {1}), "reaches outside its storage of 0 bytes");
}

TEST(TorchRebuild, RefusesEveryWrongKindOfPersistentId) {
  const auto id = [](const std::vector<Ops>& parts) { return py::tensor(py::persistent(parts), 0, {1}, {1}); };
  const Ops word = py::text("storage"), type = py::global("torch", "FloatStorage"), key = py::text("0"),
            place = py::text("cpu"), count = integer(6);
  EXPECT_NO_THROW(zip_of(id({word, type, key, place, count})).open());
  EXPECT_MALFORMED(id({word, type, key, place}), "takes 5 arguments, but has 4");
  EXPECT_MALFORMED(id({word, type, integer(0), place, count}), "the storage key is no text");
  EXPECT_MALFORMED(id({word, type, key, integer(0), count}), "the storage location is no text");
  EXPECT_MALFORMED(id({word, type, key, place, py::text("6")}), "the size of a storage is no 64-bit integer");
  EXPECT_MALFORMED(id({word, type, key, place, py::none()}), "the size of a storage is no 64-bit integer");
  EXPECT_MALFORMED(id({py::text("module"), type, key, place, count}), "the first argument is no storage");
  EXPECT_MALFORMED(id({}), "the first argument is no storage");
  EXPECT_MALFORMED(py::tensor(integer(7) + "Q", 0, {1}, {1}), "the first argument is no storage");
  EXPECT_MALFORMED(py::tensor("P0\n", 0, {1}, {1}), "the first argument is no storage");
}

TEST(TorchRebuild, ListsABareStorageAsAVector) {
  EXPECT_EQ(floats_in(six()), (Floats{0, 1, 2, 3, 4, 5}));
  const Tensor bytes = tensor_in(py::untyped_storage("0", 24));
  EXPECT_EQ(bytes.dtype(), DType::u8);
  EXPECT_EQ(bytes.shape(), (Shape{24}));
}

TEST(TorchRebuild, LooksThroughParametersAndSubclasses) {
  const Ops inner = py::tensor(six(), 0, {2}, {1});
  const Floats two{0, 1};
  EXPECT_EQ(floats_in(rebuild("_rebuild_parameter", {inner, py::boolean(true), py::ordered_dict()})), two);
  EXPECT_EQ(floats_in(rebuild("_rebuild_parameter_with_state",
                              {inner, py::boolean(true), py::ordered_dict(), py::dict({{"a", integer(1)}})})),
            two);
  EXPECT_EQ(floats_in(py::call("torch.nn.parameter", "Parameter", {inner})), two);
  EXPECT_EQ(floats_in(py::call(
                "torch._tensor", "_rebuild_from_type_v2",
                {py::global("torch._utils", "_rebuild_tensor_v2"), py::global("my", "Tensor"),
                 py::tuple({six(), integer(0), integers({2}), integers({1}), py::boolean(false), py::ordered_dict()}),
                 py::dict({})})),
            two);
  EXPECT_EQ(floats_in(rebuild("_rebuild_device_tensor_from_cpu_tensor",
                              {inner, py::global("torch", "float32"), py::text("xla:0"), py::boolean(false)})),
            two);
  const Ops built = py::build(py::global("torch.nn.parameter", "Parameter") + ")\x81",
                              py::tuple({inner, py::boolean(true), py::ordered_dict()}));
  EXPECT_EQ(floats_in(built), two);
}

TEST(TorchRebuild, RefusesATensorThatIsWrappedInItself) {
  // The state of the parameter is a tuple that holds the parameter.
  const Ops parameter = py::put(py::global("torch.nn.parameter", "Parameter") + ")\x81", 1);
  EXPECT_MALFORMED(py::build(parameter, py::tuple({py::get(1)})), "wrapped in too many others");
  Ops deep = py::tensor(six(), 0, {1}, {1});
  for (int i = 0; i < 20; ++i) deep = rebuild("_rebuild_parameter", {deep, py::boolean(true), py::ordered_dict()});
  EXPECT_MALFORMED(deep, "wrapped in too many others");

  const auto wrapped = [](int times) {
    Ops tensor = py::tensor(six(), 0, {2}, {1});
    for (int i = 0; i < times; ++i) tensor = rebuild("_rebuild_parameter", {tensor});
    return tensor;
  };
  const auto sparse_of = [](const Ops& values) {
    return rebuild("_rebuild_sparse_tensor",
                   {py::global("torch", "sparse_coo"),
                    py::tuple({py::tensor(three(), 0, {1, 2}, {2, 1}), values, integers({4})})});
  };
  EXPECT_NO_THROW(zip_of(wrapped(16)).open());
  EXPECT_MALFORMED(wrapped(17), "wrapped in too many others");
  EXPECT_NO_THROW(zip_of(sparse_of(wrapped(16))).open());
  EXPECT_MALFORMED(sparse_of(wrapped(17)), "wrapped in too many others");
  EXPECT_MALFORMED(sparse_of(py::build(parameter, py::tuple({py::get(1)}))), "wrapped in too many others");
}

TEST(TorchRebuild, LeavesOutAParameterThatHoldsNoTensor) {
  const auto noted = [](const Ops& object) { return zip_of(py::dict({{"x", object}})).open(); };
  EXPECT_TRUE(test::has_note(noted(py::call("torch.nn.parameter", "Parameter", {})), "\"x\" is left out"));
  EXPECT_TRUE(test::has_note(noted(rebuild("_rebuild_parameter", {integer(1)})), "\"x\" is left out"));
  EXPECT_TRUE(test::has_note(noted(rebuild("_rebuild_parameter", {six()})), "\"x\" is left out"));
  EXPECT_TRUE(test::has_note(noted(rebuild("_rebuild_parameter", {integer(1)})), "a tensor that is made of no tensor"));
  EXPECT_TRUE(test::has_note(noted(py::call("torch._tensor", "_rebuild_from_type_v2",
                                            {py::none(), py::global("torch", "Tensor"), py::tuple({}), py::dict({})})),
                             "a tensor rebuilt by something that is no global"));
  for (const Ops& dtype : {py::global("torch", "float3"), py::none()}) {
    const Ops meta = rebuild("_rebuild_meta_tensor_no_storage", {dtype, integers({2})});
    EXPECT_TRUE(test::has_note(noted(meta), "a tensor without data of an unknown dtype"));
  }
  EXPECT_MALFORMED(rebuild("_rebuild_parameter", {}), "takes 1 arguments, but has 0");
  EXPECT_MALFORMED(py::call("torch._tensor", "_rebuild_from_type_v2", {py::global("torch", "x")}), "takes 3 arguments");
}

TEST(TorchRebuild, AppliesConjugateAndNegativeBits) {
  const auto signs = [](const Ops& stored, std::int64_t count, const std::vector<std::pair<std::string, Ops>>& bits) {
    return rebuild("_rebuild_tensor_v2", {stored, integer(0), integers({count}), integers({1}), py::boolean(false),
                                          py::ordered_dict(), py::dict(bits)});
  };
  const std::pair<std::string, Ops> conj{"conj", py::boolean(true)}, neg{"neg", py::boolean(true)};
  using Complex = std::vector<std::complex<float>>;
  const Ops complex = storage("ComplexFloat", "0", 3);
  EXPECT_EQ(values_of<std::complex<float>>(tensor_in(signs(complex, 3, {conj}))), (Complex{{0, -1}, {2, -3}, {4, -5}}));
  EXPECT_EQ(values_of<std::complex<float>>(tensor_in(signs(complex, 3, {neg}))),
            (Complex{{0, -1}, {-2, -3}, {-4, -5}}));
  EXPECT_EQ(values_of<std::complex<float>>(tensor_in(signs(complex, 3, {conj, neg}))),
            (Complex{{0, 1}, {-2, 3}, {-4, 5}}));
  EXPECT_EQ(floats_in(signs(six(), 3, {neg})), (Floats{-0.0f, -1, -2}));
  EXPECT_EQ(floats_in(signs(six(), 3, {conj})), (Floats{0, 1, 2}));
  EXPECT_EQ(floats_in(signs(six(), 3, {{"neg", py::boolean(false)}})), (Floats{0, 1, 2}));
  EXPECT_TRUE(test::has_note(zip_of(py::dict({{"x", signs(three(), 3, {neg})}})).open(), "a negative view of I64"));
}

// Metadata are searched for every tensor that shares them, so they must be short.
TEST(TorchRebuild, RefusesMetadataThatAreNotAShortDict) {
  std::vector<std::pair<std::string, Ops>> many;
  for (int i = 0; i < 17; ++i) many.emplace_back(std::to_string(i), py::none());
  const auto with = [](const Ops& metadata) {
    return rebuild("_rebuild_tensor_v2",
                   {six(), integer(0), integers({1}), integers({1}), py::boolean(false), py::ordered_dict(), metadata});
  };
  EXPECT_MALFORMED(with(py::dict(many)), "the metadata of a tensor is no short dict");
  EXPECT_NO_THROW(zip_of(with(py::dict({many.begin(), many.begin() + 16}))).open());
  // An object would be searched for every tensor, too.
  const Ops object = py::build(py::call("collections", "Counter", {}), py::dict(many));
  EXPECT_MALFORMED(rebuild("_rebuild_tensor_v2", {six(), integer(0), integers({1}), integers({1}), py::boolean(false),
                                                  py::ordered_dict(), object}),
                   "the metadata of a tensor is no short dict");
}

TEST(TorchRebuild, SwapsBigEndianStoragesButNotUntypedOnes) {
  const auto file = [](const Ops& object, const std::string& data) {
    TorchZip zip;
    zip.object(object).record("0", data).member("byteorder", "big");
    return zip.open().at("");
  };
  const std::string big("\x3f\x80\0\0\x40\0\0\0", 8);  // 1.0, 2.0
  EXPECT_EQ(values_of<float>(file(py::tensor(storage("Float", "0", 2), 0, {2}, {1}), big)), (Floats{1, 2}));
  EXPECT_EQ(values_of<float>(file(py::tensor(storage("Float", "0", 2), 1, {1}, {1}), big)), Floats{2});
  EXPECT_EQ(values_of<std::complex<float>>(file(py::tensor(storage("ComplexFloat", "0", 1), 0, {1}, {1}), big)),
            (std::vector<std::complex<float>>{{1, 2}}));
  const Ops untyped =
      rebuild("_rebuild_tensor_v3", {py::untyped_storage("0", 8), integer(0), integers({2}), integers({1}),
                                     py::boolean(false), py::ordered_dict(), py::global("torch", "float32")});
  EXPECT_EQ(values_of<std::uint32_t>(file(untyped, big).bitcast(DType::u32)),
            (std::vector<std::uint32_t>{0x0000803f, 0x00000040}));
  TorchZip odd;
  odd.object(py::none()).member("byteorder", "middle");
  EXPECT_ERROR(odd.open(), Errc::malformed, "says neither \"little\" nor \"big\"");
}

Ops quantized(const Ops& stored, const Ops& shape, const Ops& strides, const std::vector<Ops>& quantizer) {
  return rebuild("_rebuild_qtensor",
                 {stored, integer(0), shape, strides, py::tuple(quantizer), py::boolean(false), py::ordered_dict()});
}
Ops per_tensor() { return py::global("torch", "per_tensor_affine"); }
Ops per_channel() { return py::global("torch", "per_channel_affine"); }
Ops bytes24() { return storage("QUInt8", "0", 24); }

TEST(TorchRebuild, KeepsTheScaleAndZeroPointOfAQuantizedTensor) {
  const Checkpoint checkpoint = zip_of(py::dict({{"q", quantized(bytes24(), integers({2, 3}), integers({3, 1}),
                                                                 {per_tensor(), py::real(0.5), integer(7)})}}))
                                    .open();
  EXPECT_EQ(checkpoint.at("q").dtype(), DType::qu8);
  ASSERT_EQ(checkpoint.composites.size(), 1u);
  EXPECT_EQ(checkpoint.composites[0].layout, "quantized");
  EXPECT_EQ(checkpoint.composites[0].scale, 0.5);
  EXPECT_EQ(checkpoint.composites[0].zero_point, 7);
  EXPECT_EQ(checkpoint.composites[0].parts, std::vector<std::string>{"q"});
}

TEST(TorchRebuild, KeepsTheChannelsOfAQuantizedTensorAsParts) {
  const Ops scales = py::list({py::real(0.5), integer(2)}), zeros = py::list({integer(1), integer(2)});
  const Checkpoint checkpoint = zip_of(py::dict({{"q", quantized(bytes24(), integers({2, 3}), integers({3, 1}),
                                                                 {per_channel(), scales, zeros, integer(0)})}}))
                                    .open();
  EXPECT_EQ(values_of<double>(checkpoint.at("q.scales")), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(values_of<std::int64_t>(checkpoint.at("q.zero_points")), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(checkpoint.composites.at(0).axis, 0u);
  const Ops tensors =
      quantized(bytes24(), integers({3, 2}), integers({2, 1}),
                {per_channel(), py::tensor(six(), 0, {3}, {1}), py::tensor(three(), 0, {3}, {1}), integer(0)});
  EXPECT_EQ(values_of<std::int64_t>(zip_of(tensors).open().at("zero_points")), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(TorchRebuild, RefusesAQuantizerThatDoesNotFitItsTensor) {
  const auto q = [](const std::vector<Ops>& quantizer) {
    return quantized(bytes24(), integers({2, 3}), integers({3, 1}), quantizer);
  };
  const Ops two = py::list({integer(1), integer(2)}), one = py::list({integer(1)});
  EXPECT_MALFORMED(q({}), "quantizer: takes 1 arguments");
  EXPECT_MALFORMED(q({per_tensor(), py::real(1)}), "quantizer: takes 3 arguments");
  EXPECT_MALFORMED(q({per_tensor(), py::text("1"), integer(0)}), "the scale is no 64-bit integer");
  EXPECT_MALFORMED(q({per_tensor(), py::real(1), py::real(0.5)}), "the zero point is no 64-bit integer");
  EXPECT_MALFORMED(q({per_channel(), two, two}), "quantizer: takes 4 arguments");
  EXPECT_MALFORMED(q({per_channel(), two, two, integer(2)}), "the axis is not one of the tensor's");
  EXPECT_MALFORMED(q({per_channel(), two, two, integer(-1)}), "the axis of a quantizer is -1");
  EXPECT_MALFORMED(q({per_channel(), one, two, integer(0)}), "not as many of them as channels");
  EXPECT_MALFORMED(q({per_channel(), two, one, integer(0)}), "not as many of them as channels");
  EXPECT_MALFORMED(q({per_channel(), py::list({py::text("a"), integer(1)}), two, integer(0)}), "that is no number");
  EXPECT_MALFORMED(q({per_channel(), py::dict({}), two, integer(0)}), "the scales of a tensor are no tensor");
  EXPECT_MALFORMED(quantized(bytes24(), integers({25}), integers({1}), {per_tensor(), py::real(1), integer(0)}),
                   "reaches outside");
  EXPECT_MALFORMED(quantized(bytes24(), integers({2}), integers({INT64_MAX}), {per_tensor(), py::real(1), integer(0)}),
                   "reaches outside");
  EXPECT_TRUE(test::has_note(zip_of(py::dict({{"x", q({py::global("torch", "per_row"), two, two})}})).open(),
                             "a quantizer of an unknown scheme"));
  EXPECT_TRUE(
      test::has_note(zip_of(py::dict({{"x", quantized(py::untyped_storage("0", 24), integers({2}), integers({1}),
                                                      {per_tensor(), py::real(1), integer(0)})}}))
                         .open(),
                     "a quantized tensor in an untyped storage"));
}

Ops layout(std::string_view name) {
  return py::call("torch.serialization", "_get_layout", {py::text("torch." + std::string(name))});
}
Ops sparse(std::string_view kind, const std::vector<Ops>& data) {
  return rebuild("_rebuild_sparse_tensor", {layout(kind), py::tuple(data)});
}

TEST(TorchRebuild, ListsASparseTensorByItsParts) {
  const Ops indices = py::tensor(three(), 0, {1, 3}, {3, 1}), values = py::tensor(six(), 0, {3}, {1});
  const Checkpoint coo = zip_of(py::dict({{"s", sparse("sparse_coo", {indices, values, integers({9})})}})).open();
  EXPECT_EQ(coo.at("s.indices").shape(), (Shape{1, 3}));
  EXPECT_EQ(values_of<float>(coo.at("s.values")), (Floats{0, 1, 2}));
  EXPECT_EQ(coo.composites.at(0).shape, (Shape{9}));
  EXPECT_EQ(coo.composites.at(0).parts, (std::vector<std::string>{"s.indices", "s.values"}));

  const Ops line = py::tensor(three(), 0, {3}, {1});
  const struct {
    const char *kind, *compressed, *plain;
  } kinds[] = {{"sparse_csr", "s.crow_indices", "s.col_indices"},
               {"sparse_csc", "s.ccol_indices", "s.row_indices"},
               {"sparse_bsr", "s.crow_indices", "s.col_indices"},
               {"sparse_bsc", "s.ccol_indices", "s.row_indices"}};
  for (const auto& [kind, compressed, plain] : kinds) {
    const Checkpoint file = zip_of(py::dict({{"s", sparse(kind, {line, line, values, integers({2, 3})})}})).open();
    EXPECT_EQ(file.composites.at(0).layout, kind);
    EXPECT_TRUE(file.contains(compressed)) << kind;
    EXPECT_TRUE(file.contains(plain)) << kind;
  }
}

TEST(TorchRebuild, RefusesASparseTensorOfTheWrongParts) {
  const Ops indices = py::tensor(three(), 0, {1, 3}, {3, 1}), values = py::tensor(six(), 0, {3}, {1});
  EXPECT_MALFORMED(rebuild("_rebuild_sparse_tensor", {layout("sparse_coo")}), "takes 2 arguments, but has 1");
  EXPECT_MALFORMED(sparse("sparse_coo", {indices, values}), "takes 3 arguments, but has 2");
  EXPECT_MALFORMED(sparse("sparse_csr", {indices, values, integers({9})}), "takes 4 arguments, but has 3");
  EXPECT_MALFORMED(sparse("sparse_coo", {integer(1), values, integers({9})}), "the indices of a tensor are no tensor");
  EXPECT_MALFORMED(sparse("sparse_coo", {indices, py::text("v"), integers({9})}),
                   "the values of a tensor are no tensor");
  EXPECT_MALFORMED(sparse("sparse_coo", {indices, values, integer(9)}), "the shape of a sparse tensor is no tuple");
  EXPECT_MALFORMED(sparse("sparse_coo", {indices, values, integers({-9})}), "the shape of a sparse tensor holds -9");
  EXPECT_MALFORMED(sparse("sparse_coo", {indices, values, integers(std::vector<std::int64_t>(65, 1))}),
                   "65 dimensions");
  EXPECT_MALFORMED(rebuild("_rebuild_sparse_tensor",
                           {py::call("torch.serialization", "_get_layout", {}), py::tuple({indices, values})}),
                   "layout: takes 1 arguments");
  for (const Ops& odd : {layout("jagged"), py::global("torch", "strided"), integer(3)}) {
    EXPECT_TRUE(
        test::has_note(zip_of(py::dict({{"x", rebuild("_rebuild_sparse_tensor", {odd, py::tuple({})})}})).open(),
                       "a tensor of the layout"));
  }
}

TEST(TorchRebuild, ListsTensorsWithoutData) {
  const Ops meta = rebuild(
      "_rebuild_meta_tensor_no_storage",
      {py::global("torch", "bfloat16"), integers({1 << 20, 1 << 20}), integers({1 << 20, 1}), py::boolean(false)});
  const Tensor tensor = tensor_in(meta);
  EXPECT_FALSE(tensor.has_data());
  EXPECT_EQ(tensor.dtype(), DType::bf16);
  EXPECT_EQ(tensor.numel(), std::uint64_t{1} << 40);
  const auto shaped = [](const Ops& shape) {
    return rebuild("_rebuild_meta_tensor_no_storage",
                   {py::global("torch", "float32"), shape, integers({}), py::none()});
  };
  EXPECT_MALFORMED(shaped(integers({INT64_MAX, INT64_MAX})), "does not fit 64 bits");
  EXPECT_MALFORMED(shaped(integers({0x4000000000000001})), "does not fit 64 bits");
  EXPECT_MALFORMED(shaped(integers({-1})), "holds -1");
  EXPECT_ERROR(zip_of(shaped(integers(std::vector<std::int64_t>(65, 1)))).open(), Errc::limit, "too many dimensions");
}

Ops nested(const Ops& buffer, const Ops& sizes, const Ops& strides, const Ops& offsets) {
  return rebuild("_rebuild_nested_tensor", {buffer, sizes, strides, offsets});
}

// The buffer is storage "0"; sizes, strides and offsets are I64 of these values.
Checkpoint nested_file(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                       const std::vector<std::int64_t>& offsets, std::int64_t rank = 1) {
  const auto data = [](const std::vector<std::int64_t>& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 8);
  };
  const auto count = static_cast<std::int64_t>(offsets.size());
  const auto table = [&](const char* key) {
    return py::tensor(storage("Long", key, count * rank), 0, {count, rank}, {rank, 1});
  };
  TorchZip zip;
  zip.object(py::dict({{"n", nested(py::tensor(six(), 0, {6}, {1}), table("1"), table("2"),
                                    py::tensor(storage("Long", "3", count), 0, {count}, {1}))}}))
      .record("0", kSix)
      .record("1", data(sizes))
      .record("2", data(strides))
      .record("3", data(offsets));
  return zip.open();
}

TEST(TorchRebuild, ListsTheRowsOfANestedTensor) {
  const Checkpoint file = nested_file({2, 3}, {1, 1}, {0, 3});
  EXPECT_EQ(values_of<float>(file.at("n.0")), (Floats{0, 1}));
  EXPECT_EQ(values_of<float>(file.at("n.1")), (Floats{3, 4, 5}));
  EXPECT_EQ(file.composites.at(0).layout, "nested");
}

TEST(TorchRebuild, RefusesANestedTensorWhoseRowsLieOutside) {
  EXPECT_ERROR(nested_file({2, 4}, {1, 1}, {0, 3}), Errc::malformed, "part 1 of a nested tensor reaches outside");
  EXPECT_ERROR(nested_file({2, 1}, {1, 1}, {0, 6}), Errc::malformed, "part 1 of a nested tensor reaches outside");
  EXPECT_ERROR(nested_file({2, 2}, {1, INT64_MAX}, {0, 0}), Errc::malformed, "reaches outside");
  EXPECT_ERROR(nested_file({2, INT64_MAX}, {1, 0}, {0, 0}), Errc::malformed, "");
  EXPECT_ERROR(nested_file({2, -1}, {1, 1}, {0, 0}), Errc::malformed, "negative");
  EXPECT_ERROR(nested_file({2, 1}, {1, 1}, {0, -1}), Errc::malformed, "negative");
  EXPECT_MALFORMED(nested(py::tensor(six(), 0, {6}, {1}), py::tensor(three(), 0, {3}, {1}),
                          py::tensor(three(), 0, {3}, {1}), py::tensor(three(), 0, {3}, {1})),
                   "do not go together");
  EXPECT_MALFORMED(nested(py::tensor(six(), 0, {6}, {1}), py::tensor(six(), 0, {6}, {1}),
                          py::tensor(six(), 0, {6}, {1}), py::tensor(six(), 0, {6}, {1})),
                   "are no I64");
}

// The tensor has eight bytes, a stride of 0, and claims a billion rows.
TEST(TorchRebuild, RefusesANestedTensorOfFarTooManyRows) {
  const Ops many = py::tensor(three(), 0, {1 << 30, 1}, {0, 1});
  EXPECT_ERROR(zip_of(nested(py::tensor(six(), 0, {6}, {1}), many, many, many)).open(), Errc::limit, "too many parts");
}

TEST(TorchRebuild, CountsTheRowsAndDimensionsOfANestedTensor) {
  const auto of = [](const Ops& table, const Ops& offsets) {
    return zip_of(nested(py::tensor(six(), 0, {6}, {1}), table, table, offsets));
  };
  const auto table = [](std::int64_t rows, std::int64_t rank) {
    return py::tensor(three(), 1, {rows, rank}, {0, 0});  // all elements are ones
  };
  const Ops offset = py::tensor(three(), 0, {1}, {1}), none = py::tensor(three(), 0, {0}, {1});
  EXPECT_EQ(of(table(1, 64), offset).open().at("0").rank(), 64u);
  EXPECT_ERROR(of(table(1, 65), offset).open(), Errc::malformed, "do not go together");
  EXPECT_ERROR(of(table(500'000, 2), none).open(), Errc::malformed, "do not go together");
  EXPECT_ERROR(of(py::tensor(three(), 1, {1'000'001, 1}, {0, 0}), none).open(), Errc::limit, "too many parts");

  const Ops strided = py::tensor(six(), 0, {3}, {2});
  EXPECT_MALFORMED(nested(strided, table(1, 1), table(1, 1), offset), "reaches outside its buffer");
  EXPECT_ERROR(nested_file({3, 3, 3}, {INT64_MAX, INT64_MAX, INT64_MAX}, {0}, 3), Errc::malformed,
               "reaches outside its buffer");
}

TEST(TorchRebuild, HasAsManyDimensionsAsAreAllowedInEveryKindOfTensor) {
  const std::vector<std::int64_t> most(64, 1), more(65, 1);
  const auto sparse = [](const std::vector<std::int64_t>& shape) {
    return rebuild("_rebuild_sparse_tensor",
                   {py::global("torch", "sparse_coo"), py::tuple({py::tensor(three(), 0, {1, 2}, {2, 1}),
                                                                  py::tensor(six(), 0, {2}, {1}), integers(shape)})});
  };
  const auto meta = [](const std::vector<std::int64_t>& shape) {
    return rebuild("_rebuild_meta_tensor_no_storage", {py::global("torch", "float32"), integers(shape)});
  };
  EXPECT_NO_THROW(zip_of(sparse(most)).open());
  EXPECT_MALFORMED(sparse(more), "the sparse tensor has 65 dimensions");
  EXPECT_NO_THROW(zip_of(meta(most)).open());
  EXPECT_ERROR(zip_of(meta(more)).open(), Errc::limit, "too many dimensions");
}

TEST(TorchRebuild, KnowsTheTensorClassesOfTheOldestFiles) {
  const auto built = [](std::string_view name, const Ops& state) {
    return py::build(py::global("torch", name) + ")R", state);
  };
  EXPECT_EQ(floats_in(built("FloatTensor", py::tuple({six(), integer(1), integers({2}), integers({1})}))),
            (Floats{1, 2}));
  EXPECT_EQ(tensor_in(built("LongTensor", py::list({three(), integer(0), integers({3}), integers({1})}))).dtype(),
            DType::i64);
  EXPECT_MALFORMED(built("FloatTensor", py::tuple({six(), integer(1), integers({6}), integers({1})})),
                   "reaches outside");
  EXPECT_MALFORMED(built("FloatTensor", py::tuple({six(), integer(1)})), "takes 4 arguments, but has 2");
  EXPECT_MALFORMED(built("FloatTensor", py::dict({{"a", integer(1)}})), "takes a tuple of arguments");
}

TEST(TorchRebuild, OpensAFileInsideBytes) {
  TorchZip inner;
  inner.object(py::dict({{"w", py::tensor(six(), 0, {2}, {1})}})).record("0", kSix);
  const Ops call = py::call("torch.storage", "_load_from_bytes", {py::bytes(inner.text())});
  const Checkpoint outer = zip_of(py::dict({{"a", call}})).open();
  EXPECT_EQ(values_of<float>(outer.at("a.w")), (Floats{0, 1}));

  TorchZip one_storage;
  one_storage.object(six()).record("0", kSix);
  const Ops stored = py::call("torch.storage", "_load_from_bytes", {py::bytes(one_storage.text())});
  EXPECT_EQ(floats_in(py::tensor(stored, 4, {2}, {1})), (Floats{4, 5}));
  EXPECT_MALFORMED(py::tensor(stored, 5, {2}, {1}), "reaches outside");
  EXPECT_MALFORMED(py::tensor(call, 0, {1}, {1}), "");
  // The one tensor of these files is not a storage: a scalar, a matrix, every other element of a vector.
  for (const Ops& other :
       {py::tensor(six(), 0, {}, {}), py::tensor(six(), 0, {2, 3}, {3, 1}), py::tensor(six(), 0, {3}, {2})}) {
    TorchZip file;
    file.object(other).record("0", kSix);
    EXPECT_MALFORMED(py::tensor(py::call("torch.storage", "_load_from_bytes", {py::bytes(file.text())}), 0, {1}, {1}),
                     "a file inside a pickle is not the one storage that is needed here");
  }
  EXPECT_MALFORMED(py::call("torch.storage", "_load_from_bytes", {integer(1)}), "_load_from_bytes of no bytes");
  EXPECT_MALFORMED(py::call("torch.storage", "_load_from_bytes", {}), "_load_from_bytes of no bytes");
}

TEST(TorchRebuild, KeepsTheCompositesOfAFileInsideBytes) {
  TorchZip inner;
  inner
      .object(py::dict(
          {{"q", quantized(bytes24(), integers({4}), integers({1}), {per_tensor(), py::real(0.5), integer(1)})}}))
      .record("0", kSix);
  const Ops call = py::call("torch.storage", "_load_from_bytes", {py::bytes(inner.text())});
  const Checkpoint outer = zip_of(py::dict({{"a", call}})).open();
  EXPECT_EQ(outer.composites.at(0).name, "a.q");
  EXPECT_EQ(outer.composites.at(0).parts, std::vector<std::string>{"a.q"});
}

TEST(TorchRebuild, StopsAtFilesThatLieInsideEachOtherTooDeep) {
  std::string file = TorchZip().object(py::none()).text();
  for (int i = 0; i < 6; ++i)
    file = TorchZip().object(py::call("torch.storage", "_load_from_bytes", {py::bytes(file)})).text();
  EXPECT_ERROR(test::open_text(file), Errc::limit, "lie inside each other too deep");
}

TEST(TorchRebuild, NamesTheDangerousGlobalsOfAFileInsideBytes) {
  const std::string inner = TorchZip().object(py::call("os", "system", {py::text("id")})).text();
  const Checkpoint outer = zip_of(py::call("torch.storage", "_load_from_bytes", {py::bytes(inner)})).open();
  ASSERT_EQ(outer.dangerous.size(), 1u);
  EXPECT_EQ(outer.dangerous[0].name, "system");
}

// Elements that share a byte are counted as torch counts them: bytes in storages, elements in shapes of quantized
// tensors.
TEST(TorchRebuild, CountsElementsThatShareAByte) {
  const Ops packed = quantized(storage("QUInt4x2", "0", 24), integers({6, 8}), integers({8, 1}),
                               {per_tensor(), py::real(1), integer(0)});
  EXPECT_EQ(tensor_in(packed).dtype(), DType::qu4x2);
  EXPECT_EQ(tensor_in(packed).nbytes(), 24u);
  EXPECT_MALFORMED(quantized(storage("QUInt4x2", "0", 24), integers({7, 8}), integers({8, 1}),
                             {per_tensor(), py::real(1), integer(0)}),
                   "reaches outside");
  const auto f4 = [](const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
    return rebuild("_rebuild_tensor_v3",
                   {py::untyped_storage("0", 24), integer(0), integers(shape), integers(strides), py::boolean(false),
                    py::ordered_dict(), py::global("torch", "float4_e2m1fn_x2")});
  };
  EXPECT_EQ(tensor_in(f4({3, 4}, {4, 1})).shape(), (Shape{3, 8}));
  const auto noted = [](const Ops& object) { return zip_of(py::dict({{"x", object}})).open(); };
  EXPECT_TRUE(test::has_note(noted(f4({3, 4}, {4, 2})), "a strided view of F4"));
  EXPECT_TRUE(test::has_note(noted(f4({}, {})), "a strided view of F4"));
  const Ops inside = rebuild("_rebuild_qtensor", {storage("QUInt4x2", "0", 24), integer(1), integers({2}),
                                                  integers({1}), py::tuple({per_tensor(), py::real(1), integer(0)})});
  EXPECT_TRUE(test::has_note(noted(inside), "a view that begins inside a byte"));
  EXPECT_MALFORMED(f4({7, 4}, {4, 1}), "reaches outside");
  EXPECT_MALFORMED(f4({INT64_MAX}, {1}), "");
}

}  // namespace
}  // namespace ballast
