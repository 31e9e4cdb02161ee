// NumPy's arrays inside pickles, of every protocol and of NumPy 1 and 2.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/torch_file.hpp"
#include "formats/torch/latin1_storage.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

namespace py = test::py;
using py::integer;
using py::Ops;
using test::raw;
using test::values_of;

Ops dtype(const char* code, const Ops& order = py::text("<")) {
  return py::build(
      py::call("numpy", "dtype", {py::text(code), py::boolean(false), py::boolean(true)}),
      py::tuple({integer(3), order, py::none(), py::none(), py::none(), integer(-1), integer(-1), integer(0)}));
}
Ops array(const Ops& type, const std::vector<std::int64_t>& shape, const Ops& data, bool fortran = false,
          std::string_view module = "numpy.core.multiarray") {
  return py::build(
      py::call(module, "_reconstruct", {py::global("numpy", "ndarray"), py::integers({0}), py::bytes("b")}),
      py::tuple({integer(1), py::integers(shape), type, py::boolean(fortran), data}));
}
Checkpoint open_array(const Ops& object) { return test::open_text(py::pickle(py::dict({{"x", object}}), 3)); }

// Python 3 writes bytes like this under protocol 2: each byte above 127 takes two.
Ops latin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return py::call("_codecs", "encode", {py::text(text), py::text("latin1")});
}

const std::string kSixPickled = raw<float>({0, -1, 2, 3, 4, 5});

TEST(PickledNumpy, ReadsArraysOfBothOrders) {
  EXPECT_EQ(values_of<float>(open_array(array(dtype("f4"), {2, 3}, py::bytes(kSixPickled))).at("x")),
            (std::vector<float>{0, -1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of<float>(open_array(array(dtype("f4"), {2, 3}, py::bytes(kSixPickled), true)).at("x")),
            (std::vector<float>{0, 2, 4, -1, 3, 5}));
  EXPECT_EQ(values_of<std::int16_t>(
                open_array(array(dtype("i2", py::text(">")), {2}, py::bytes(std::string("\0\1\1\0", 4)))).at("x")),
            (std::vector<std::int16_t>{1, 256}));
  EXPECT_EQ(open_array(array(dtype("f4"), {0, 3}, py::bytes(""))).at("x").shape(), (Shape{0, 3}));
  EXPECT_EQ(open_array(array(dtype("f4"), {}, py::bytes(kSixPickled.substr(0, 4)))).at("x").rank(), 0u);
}

TEST(PickledNumpy, KnowsTheModulesOfNumpyTwoAndTheBuffersOfProtocolFive) {
  EXPECT_EQ(
      open_array(array(dtype("f4"), {6}, py::bytes(kSixPickled), false, "numpy._core.multiarray")).at("x").numel(), 6u);
  for (const char* module : {"numpy.core.numeric", "numpy._core.numeric"}) {
    const Ops buffer =
        py::call(module, "_frombuffer", {py::bytes(kSixPickled), dtype("f4"), py::integers({2, 3}), py::text("F")});
    EXPECT_EQ(values_of<float>(open_array(buffer).at("x")), (std::vector<float>{0, 2, 4, -1, 3, 5}));
  }
}

TEST(PickledNumpy, DecodesBytesThatProtocolTwoWroteAsText) {
  EXPECT_EQ(values_of<float>(open_array(array(dtype("f4"), {6}, latin1(kSixPickled))).at("x")),
            (std::vector<float>{0, -1, 2, 3, 4, 5}));
  // This array is longer than what is kept in memory: it stays in the file.
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += static_cast<char>(i * 7);
  const Tensor far = open_array(array(dtype("u1", py::text("|")), {100'000}, latin1(many))).at("x");
  EXPECT_EQ(values_of<char>(far), std::vector<char>(many.begin(), many.end()));
  std::vector<std::byte> middle(10);
  far.read(50'000, middle);
  EXPECT_EQ(std::to_integer<int>(middle[0]), (50'000 * 7) & 0xFF);
  far.read(10, middle);
  EXPECT_EQ(std::to_integer<int>(middle[0]), 70);
}

TEST(PickledNumpy, RefusesTextThatStandsForOtherBytes) {
  const auto text = [](const std::string& chars) {
    return py::call("_codecs", "encode", {py::text(chars), py::text("latin1")});
  };
  const auto refused = [](const Ops& data, std::int64_t count, const char* why) {
    EXPECT_ERROR(values_of<char>(open_array(array(dtype("u1", py::text("|")), {count}, data)).at("x")), Errc::malformed,
                 why);
  };
  refused(text("\xe2\x82\xac"), 1, "above U+00FF");
  refused(text("abc"), 2, "3 bytes in a pickle where 2 are needed");
  const std::string far(70'000, 'a');
  refused(text(far), 69'999, "does not come to 69999 bytes");
  refused(text(far), 70'001, "70000 bytes in a pickle where 70001 are needed");
  refused(text(far + "\xe2\x82\xac"), 70'001, "above U+00FF");
  refused(text(far), 30'000, "where 30000 are needed");
  std::string wide;  // two bytes for each character
  for (int i = 0; i < 35'000; ++i) wide += "\xc3\xa4";
  refused(text(wide), 34'999, "70000 bytes in a pickle where 34999 are needed");
  EXPECT_EQ(open_array(array(dtype("u1", py::text("|")), {35'000}, text(wide))).at("x").numel(), 35'000u);
  EXPECT_EQ(values_of<char>(open_array(array(dtype("u1", py::text("|")), {70'000}, text(far))).at("x")).size(),
            70'000u);
  refused(text(far + "\xc3"), 70'001, "");
  refused(text(far + "\xc3"
                     "a"),
          70'001, "above U+00FF");
}

TEST(PickledNumpy, RefusesDataOfAnotherSize) {
  const auto refused = [](const Ops& object, const std::string& why) {
    EXPECT_ERROR(open_array(object), Errc::malformed, why);
  };
  refused(array(dtype("f4"), {7}, py::bytes(kSixPickled)), "24 bytes in a pickle where 28 are needed");
  refused(array(dtype("f4"), {5}, py::bytes(kSixPickled)), "24 bytes in a pickle where 20 are needed");
  refused(array(dtype("f4"), {0x4000000000000001}, py::bytes("abcd")), "does not fit 64 bits");
  refused(array(dtype("f4"), {-1}, py::bytes("")), "the shape of an array holds -1");
  refused(array(dtype("f4"), {6}, integer(1)), "no bytes where bytes are needed");
  refused(array(dtype("f4"), {0}, py::call("_codecs", "encode", {})), "no bytes where bytes are needed");
  refused(array(dtype("u1", py::text("|")), {1}, py::call("_codecs", "encode", {latin1("a")})),
          "no bytes where bytes are needed");
  for (const std::int64_t nearly : {69'999, 70'001, 1})
    refused(array(dtype("u1", py::text("|")), {nearly}, py::bytes(std::string(70'000, 'x'))),
            "70000 bytes in a pickle where " + std::to_string(nearly) + " are needed");
  EXPECT_NO_THROW(open_array(array(dtype("f4"), std::vector<std::int64_t>(64, 1), py::bytes("abcd"))));
  refused(array(dtype("f4"), std::vector<std::int64_t>(65, 1), py::bytes("abcd")), "the array has 65 dimensions");
  refused(py::build(py::call("numpy.core.multiarray", "_reconstruct", {}), py::tuple({integer(1)})),
          "takes 5 arguments");
}

TEST(PickledNumpy, KeepsArraysOfObjectsAndTextAsValues) {
  const Checkpoint objects = open_array(
      array(dtype("O8", py::text("|")), {2}, py::list({integer(1), array(dtype("f4"), {6}, py::bytes(kSixPickled))})));
  EXPECT_EQ(objects.at("x.1").numel(), 6u);
  const Checkpoint texts = open_array(array(dtype("U2"), {1}, py::bytes(std::string("a\0\0\0b\0\0\0", 8))));
  EXPECT_TRUE(texts.tensors.empty());
  EXPECT_FALSE(texts.values.empty());
}

TEST(PickledNumpy, RefusesTextThatIsNotLatin1OrOfAnotherLength) {
  EXPECT_ERROR(torch::decode_latin1("a\xc3"), Errc::malformed, "above U+00FF");
  EXPECT_ERROR(torch::decode_latin1("abc\xc3"), Errc::malformed, "above U+00FF");
  EXPECT_ERROR(torch::decode_latin1("\xc3"
                                    "a"),
               Errc::malformed, "above U+00FF");
  const auto read = [](std::string_view text, std::uint64_t size) {
    std::vector<std::byte> out(static_cast<std::size_t>(size));
    torch::latin1_storage(test::source_of(text), 0, text.size(), size)->read(0, out);
  };
  EXPECT_NO_THROW(read("ab\xc3\xa4", 3));
  EXPECT_ERROR(read("ab", 3), Errc::malformed, "does not come to 3 bytes");
  EXPECT_ERROR(read("ab\xc3", 3), Errc::malformed, "above U+00FF");
  EXPECT_ERROR(read("abcd", 3), Errc::malformed, "does not come to 3 bytes");
}

TEST(PickledNumpy, OfJoblibHasAsManyDimensionsAsAreAllowed) {
  const auto opened = [](std::uint64_t most) {
    const Ops wrapper = py::build(py::global("joblib.numpy_pickle", "NumpyArrayWrapper") + ")\x81",
                                  py::dict({{"shape", py::integers({1, 2, 3})}, {"dtype", dtype("u1")}}));
    OpenOptions options;
    options.limits.max_rank = most;
    return test::open_text("\x80\x03" + wrapper + "abcdef" + ".", options);
  };
  EXPECT_EQ(opened(3).tensors[0].tensor.rank(), 3u);
  EXPECT_ERROR(opened(2), Errc::limit, "an array of joblib's has too many dimensions");
}

TEST(PickledNumpy, KeepsRecordsAsValues) {
  const Ops record =
      py::build(py::call("numpy", "dtype", {py::text("V8"), py::boolean(false), py::boolean(true)}),
                py::tuple({integer(3), py::text("|"), py::none(), py::tuple({py::text("a")}), py::dict({})}));
  EXPECT_TRUE(open_array(array(record, {1}, py::bytes("12345678"))).tensors.empty());
}

}  // namespace
}  // namespace ballast
