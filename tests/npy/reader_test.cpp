// NumPy's own files: every order and type of numbers, and headers that lie.
#include <gtest/gtest.h>

#include <ballast/open.hpp>

#include "builders/torch_file.hpp"
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ballast {
namespace {

using test::raw;
using test::u16;
using test::u32;
using test::values_of;
using test::ZipFile;

std::string npy(const std::string& header, std::string_view data, int version = 1) {
  const std::string length = version == 1 ? u16(header.size()) : u32(header.size());
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') + length + header +
         std::string(data);
}
std::string header_of(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }\n";
}
Tensor open_npy(const std::string& descr, const std::string& shape, std::string_view data, bool fortran = false) {
  return test::open_text(npy(header_of(descr, shape, fortran), data)).at("");
}

const std::string kSix = raw<float>({0, 1, 2, 3, 4, 5});

TEST(Npy, ReadsAnArrayAsTheTensorWithoutAName) {
  const Checkpoint checkpoint = test::open_text(npy(header_of("<f4", "(2, 3)"), kSix));
  EXPECT_EQ(checkpoint.format, Format::npy);
  EXPECT_EQ(checkpoint.at("").shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of<float>(checkpoint.at("")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, ReadsFortranOrderAndBigEndian) {
  EXPECT_EQ(values_of<float>(open_npy("<f4", "(2, 3)", kSix, true)), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(values_of<std::int16_t>(open_npy(">i2", "(2,)", std::string("\x01\x02\xff\xfe", 4))),
            (std::vector<std::int16_t>{0x0102, -2}));
  EXPECT_EQ(values_of<std::int16_t>(open_npy(">i2", "(2, 2)", std::string("\0\1\0\2\0\3\0\4", 8), true)),
            (std::vector<std::int16_t>{1, 3, 2, 4}));
  const std::string big_complex("\x3f\x80\0\0\x40\0\0\0", 8);
  EXPECT_EQ(values_of<float>(open_npy(">c8", "(1,)", big_complex).bitcast(DType::f32)), (std::vector<float>{1, 2}));
}

TEST(Npy, KnowsEveryTypeOfNumber) {
  const struct {
    const char* descr;
    DType dtype;
  } types[] = {{"|b1", DType::boolean}, {"|i1", DType::i8},    {"|u1", DType::u8},  {"<i2", DType::i16},
               {"<u2", DType::u16},     {"<i4", DType::i32},   {"<u4", DType::u32}, {"<i8", DType::i64},
               {"<u8", DType::u64},     {"<f2", DType::f16},   {"<f4", DType::f32}, {"<f8", DType::f64},
               {"<c8", DType::c64},     {"<c16", DType::c128}, {"=f4", DType::f32}, {"f4", DType::f32}};
  for (const auto& [descr, dtype] : types) {
    const Tensor tensor = open_npy(descr, "()", std::string(info(dtype).block_bytes, '\0'));
    EXPECT_EQ(tensor.dtype(), dtype) << descr;
    EXPECT_EQ(tensor.rank(), 0u) << descr;
  }
}

TEST(Npy, ReadsTheOtherVersionsAndSpellings) {
  EXPECT_EQ(test::open_text(npy(header_of("<f4", "(6,)"), kSix, 2)).at("").numel(), 6u);
  EXPECT_EQ(test::open_text(npy(header_of("<f4", "(6,)"), kSix, 3)).at("").numel(), 6u);
  EXPECT_EQ(
      test::open_text(npy("{\"shape\": (6L,),\"descr\":\"<f4\" , \"fortran_order\" :False}", kSix)).at("").numel(), 6u);
  EXPECT_EQ(open_npy("<f4", "(0, 3)", "").shape(), (Shape{0, 3}));
}

TEST(Npy, RefusesHeadersThatLie) {
  const auto refused = [](const std::string& header, const char* why, Errc code = Errc::malformed) {
    EXPECT_ERROR(test::open_text(npy(header, kSix)), code, why);
  };
  refused(header_of("<f4", "(7,)"), "does not take the 24 bytes that follow the header");
  refused(header_of("<f4", "(5,)"), "does not take the 24 bytes");
  refused(header_of("<f8", "(6,)"), "does not take the 24 bytes");
  refused(header_of("<f4", "(4611686018427387905, )"), "does not take");  // 4 times that is 4 in 64 bits
  refused(header_of("<f4", "(4294967296, 4294967296)"), "does not take");
  refused(header_of("<f4", "(18446744073709551616,)"), "no number of 64 bits");
  refused(header_of("<f4", "(-6,)"), "no number of 64 bits");
  refused(header_of("<f4", "6"), "no '('");
  refused(header_of("<f4", "(6 6)"), "no ')'");
  refused("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "neither True nor False");
  refused("{'descr': '<f4', 'shape': (6,)}", "a key is missing");
  refused("{'fortran_order': False, 'shape': (6,)}", "a key is missing");
  refused("{'descr': '<f4', 'fortran_order': False}", "a key is missing");
  refused("{'descr': '<f4', 'shape': (6,), 'fortran_order': False, 'shape': (6,)}", "unknown or there twice");
  refused("{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': (6,)}", "unknown or there twice");
  refused("{'descr': 4, 'fortran_order': False, 'shape': (6,)}", "no string");
  refused("{4444: 4}", "no string");
  refused("{'descr':", "no string");
  refused("{'descr': [", "a NumPy array of records", Errc::unsupported);
  refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "unknown or there twice");
  refused("{'descr': '<f4', 'x': 1, 'fortran_order': False, 'shape': (6,)}", "the key \"x\" is unknown");
  refused(header_of("<f4", "(6,)") + "x", "something follows the dict");
  refused("{'descr: 1", "a string without an end");
  refused("", "no '{'");
  refused("__import__('os').system('id')", "no '{'");
  refused(header_of("<U4", "(6,)"), "a NumPy array of \"<U4\"", Errc::unsupported);
  refused(header_of("<M8[ns]", "(3,)"), "a NumPy array of", Errc::unsupported);
  refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", "a NumPy array of records",
          Errc::unsupported);
  std::string deep = "(";
  for (int i = 0; i < 65; ++i) deep += "1,";
  refused(header_of("<f4", deep + ")"), "too many dimensions");
}

TEST(Npy, RefusesToBeCutAnywhere) {
  const std::string whole = npy(header_of("<f4", "(6,)"), kSix);
  for (std::size_t size = 6; size < whole.size(); ++size)
    EXPECT_ERROR(test::open_text(whole.substr(0, size)), Errc::malformed, "");
  EXPECT_ERROR(test::open_text(whole + "x"), Errc::malformed, "does not take the 25 bytes");
  EXPECT_ERROR(test::open_text(npy(header_of("<f4", "(6,)"), kSix, 4)), Errc::unsupported, "version 4");
  EXPECT_ERROR(test::open_text(npy(header_of("<f4", "(6,)"), kSix, 0)), Errc::unsupported, "version 0");
  const auto saying = [](std::uint64_t length) { return "\x93NUMPY\x02" + std::string(1, '\0') + u32(length); };
  EXPECT_ERROR(test::open_text(saying(UINT32_MAX)), Errc::limit, "the NumPy header has");
  EXPECT_ERROR(test::open_text(saying((1 << 20) + 1)), Errc::limit, "the NumPy header has 1048577 bytes");
  EXPECT_ERROR(test::open_text(saying(1 << 20)), Errc::malformed, "ends early");
  EXPECT_ERROR(test::open_text("\x93NUMPY\x02" + std::string(1, '\0') + u32(1000) + "{"), Errc::malformed, "");
}

TEST(Npy, WalksThePickleOfAnArrayOfObjects) {
  namespace py = test::py;
  const py::Ops dtype = py::call("numpy", "dtype", {py::text("O8"), py::boolean(false), py::boolean(true)});
  const py::Ops array = py::build(py::call("numpy.core.multiarray", "_reconstruct",
                                           {py::global("numpy", "ndarray"), py::integers({0}), py::bytes("b")}),
                                  py::tuple({py::integer(1), py::integers({2}), dtype, py::boolean(false),
                                             py::list({py::integer(7), py::text("x")})}));
  const Checkpoint checkpoint = test::open_text(npy(header_of("|O", "(2,)"), py::pickle(array, 3)));
  EXPECT_EQ(checkpoint.format, Format::npy);
  ASSERT_EQ(checkpoint.values.size(), 2u);
  EXPECT_EQ(checkpoint.values[0].path, "0");
  EXPECT_EQ(std::get<std::int64_t>(checkpoint.values[0].value), 7);

  const Checkpoint hostile =
      test::open_text(npy(header_of("|O", "(1,)"), py::pickle(py::call("os", "system", {py::text("id")}))));
  EXPECT_EQ(hostile.dangerous.size(), 1u);
}

TEST(Npz, NamesArraysByTheirMembers) {
  const std::string zip = ZipFile()
                              .stored("a.npy", npy(header_of("<f4", "(6,)"), kSix))
                              .deflated("sub/b.npy", npy(header_of("<f4", "(2, 3)"), kSix))
                              .text();
  const Checkpoint checkpoint = test::open_text(zip);
  EXPECT_EQ(checkpoint.format, Format::npz);
  EXPECT_EQ(values_of<float>(checkpoint.at("a")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(checkpoint.at("sub/b").shape(), (Shape{2, 3}));
}

TEST(Npz, SaysWhichMemberIsWrong) {
  const std::string zip = ZipFile().stored("a.npy", npy(header_of("<f4", "(7,)"), kSix)).text();
  const auto error = BALLAST_ERROR_OF(test::open_text(zip));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->where(), "file!/a.npy");
}

}  // namespace
}  // namespace ballast
