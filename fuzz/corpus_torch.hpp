// The inputs that fuzzing PyTorch's containers begins with: every kind of tensor, as the object of a zip and of a
// stream.
#pragma once

#include <string>
#include <vector>

#include "builders/torch_file.hpp"

namespace ballast::fuzz {

namespace py = test::py;

inline std::vector<py::Ops> torch_objects() {
  using py::integer;
  using py::integers;
  const py::Ops floats = py::storage("Float", "0", 16), longs = py::storage("Long", "1", 4);
  const py::Ops line = py::tensor(longs, 0, {3}, {1}), values = py::tensor(floats, 0, {3}, {1});
  const py::Ops matrix = py::tensor(floats, 0, {4, 4}, {1, 4}), no = py::boolean(false);
  const auto layout = [](const char* name) { return py::call("torch.serialization", "_get_layout", {py::text(name)}); };
  const auto sparse = [&](const char* name, const std::vector<py::Ops>& parts) {
    return py::rebuild("_rebuild_sparse_tensor", {layout(name), py::tuple(parts)});
  };
  const auto quantized = [&](const char* kind, const std::vector<py::Ops>& quantizer) {
    return py::rebuild("_rebuild_qtensor", {py::storage(kind, "0", 64), integer(0), integers({4, 4}), integers({4, 1}),
                                            py::tuple(quantizer), no, py::ordered_dict()});
  };
  const py::Ops four = py::list({integer(1), integer(2), integer(3), integer(4)});
  const py::Ops dtype = py::build(py::call("numpy", "dtype", {py::text("f4"), no, py::boolean(true)}),
                                  py::tuple({integer(3), py::text(">"), py::none(), py::none(), py::none()}));
  return {
      py::dict({{"w", matrix}, {"epoch", integer(3)}, {"lr", py::real(0.1)}}),
      py::ordered_dict({{"a.b", values}, {"a", py::dict({{"b", line}})}}),
      py::rebuild("_rebuild_tensor", {floats, integer(1), integers({2}), integers({3})}),
      py::rebuild("_rebuild_tensor_v2",
                  {py::storage("ComplexFloat", "0", 8), integer(0), integers({2, 2}), integers({0, 1}), no,
                   py::ordered_dict(), py::dict({{"conj", py::boolean(true)}})}),
      py::rebuild("_rebuild_tensor_v3", {py::untyped_storage("0", 64), integer(0), integers({2, 4}), integers({4, 1}),
                                         no, py::ordered_dict(), py::global("torch", "float4_e2m1fn_x2")}),
      py::rebuild("_rebuild_parameter", {matrix, py::boolean(true), py::ordered_dict()}),
      py::call("torch._tensor", "_rebuild_from_type_v2",
               {py::global("torch._utils", "_rebuild_tensor"), py::global("my", "T"),
                py::tuple({floats, integer(0), integers({2}), integers({1})}), py::dict({})}),
      quantized("QUInt8", {py::global("torch", "per_tensor_affine"), py::real(0.5), integer(1)}),
      quantized("QInt8", {py::global("torch", "per_channel_affine"), four, four, integer(1)}),
      py::rebuild("_rebuild_qtensor", {py::storage("QUInt4x2", "0", 64), integer(0), integers({4, 8}), integers({8, 1}),
                                       py::tuple({py::global("torch", "per_tensor_affine"), py::real(1), integer(0)}),
                                       no, py::ordered_dict()}),
      sparse("torch.sparse_coo", {py::tensor(longs, 0, {1, 3}, {3, 1}), values, integers({9})}),
      sparse("torch.sparse_coo",
             {py::tensor(longs, 0, {2, 2}, {2, 1}), py::tensor(floats, 0, {2, 3}, {3, 1}), integers({4, 4, 3})}),
      sparse("torch.sparse_csr", {py::tensor(longs, 0, {4}, {1}), line, values, integers({3, 4})}),
      sparse("torch.sparse_csc", {py::tensor(longs, 0, {4}, {1}), line, values, integers({4, 3})}),
      sparse("torch.sparse_bsr",
             {py::tensor(longs, 0, {4}, {1}), line, py::tensor(floats, 0, {3, 2, 2}, {4, 2, 1}), integers({6, 8})}),
      py::rebuild("_rebuild_nested_tensor", {py::tensor(floats, 0, {16}, {1}), py::tensor(longs, 0, {2, 1}, {1, 1}),
                                             py::tensor(longs, 1, {2, 1}, {1, 1}), py::tensor(longs, 0, {2}, {1})}),
      py::rebuild("_rebuild_meta_tensor_no_storage",
                  {py::global("torch", "bfloat16"), integers({9}), integers({1}), no}),
      py::build(py::global("torch", "FloatTensor") + ")R",
                py::tuple({floats, integer(0), integers({2}), integers({1})})),
      py::build(py::call("numpy.core.multiarray", "_reconstruct",
                         {py::global("numpy", "ndarray"), integers({0}), py::bytes("b")}),
                py::tuple({integer(1), integers({2}), dtype, no, py::bytes("12345678")})),
      py::call("numpy.core.numeric", "_frombuffer", {py::bytes("12345678"), dtype, integers({2}), py::text("C")}),
      py::build(py::global("my", "Net") + ")\x81", py::dict({{"_parameters", py::ordered_dict({{"w", values}})},
                                                             {"_buffers", py::dict({{"b", line}})},
                                                             {"_modules", py::ordered_dict()}})),
      py::list({floats, longs, py::put(py::list({integer(1)}), 1), py::get(1)}),
  };
}

// The first byte says how the rest is used; see legacy_stream_fuzz.cpp.
inline std::vector<std::string> torch_files() {
  std::vector<std::string> inputs;
  for (const py::Ops& object : torch_objects()) {
    const std::string pickle = py::pickle(object);
    inputs.push_back("\x02" + pickle);
    inputs.push_back("\x03" + pickle);
    // In a stream every storage must be used.
    const py::Ops all = py::list({object, py::storage("Float", "0", 16), py::storage("Long", "1", 4)});
    inputs.push_back("\x01" + py::pickle(all) + py::pickle(py::list({py::text("0"), py::text("1")})) + test::u64(16) +
                     std::string(64, '\1') + test::u64(4) + std::string(32, '\0'));
  }
  test::TorchStream stream;
  stream.object(py::tensor(py::storage("Float", "a", 1), 0, {1}, {1})).record("a", 1, "abcd");
  inputs.push_back(std::string(1, '\0') + stream.text());
  inputs.push_back("\x04" + py::pickle(py::tuple({py::tensor(py::storage("Float", "0", 16), 0, {2}, {1})})));
  inputs.push_back("\x05" + py::pickle(py::dict({{"w", py::integer(20) + "Q"}})));
  const std::string storage =
      py::pickle(py::tuple({py::integer(10), py::text("cpu"), py::global("torch", "FloatStorage")}));
  inputs.push_back("\x06" + py::pickle(py::integer(1)) + storage + test::u64(16) + std::string(64, '\1') +
                   py::pickle(py::list({py::integers({11, 10, 1, 2})})));
  const std::string tensor =
      py::pickle(py::tuple({py::integer(20), py::integer(10), py::global("torch", "FloatTensor")}));
  inputs.push_back("\x07" + py::pickle(py::integer(1)) + tensor + test::u32(1) + "junk" + test::u64(4) + test::u64(1) +
                   test::u64(0));
  return inputs;
}

}  // namespace ballast::fuzz
