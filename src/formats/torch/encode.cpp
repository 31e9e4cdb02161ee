#include "formats/torch/encode.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "formats/torch/pickle_writer.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {
namespace {

struct TypedStorage {
  DType dtype;
  std::string_view name;
};

// The dtypes that have a storage class of their own. Tensors of all later dtypes lie in untyped storages, and the
// tensor says its dtype.
// clang-format off
constexpr std::array kTypedStorages = {
    TypedStorage{DType::f64, "DoubleStorage"}, TypedStorage{DType::f32, "FloatStorage"},
    TypedStorage{DType::f16, "HalfStorage"}, TypedStorage{DType::bf16, "BFloat16Storage"},
    TypedStorage{DType::i64, "LongStorage"}, TypedStorage{DType::i32, "IntStorage"},
    TypedStorage{DType::i16, "ShortStorage"}, TypedStorage{DType::i8, "CharStorage"},
    TypedStorage{DType::u8, "ByteStorage"}, TypedStorage{DType::boolean, "BoolStorage"},
    TypedStorage{DType::c64, "ComplexFloatStorage"}, TypedStorage{DType::c128, "ComplexDoubleStorage"},
    TypedStorage{DType::qi8, "QInt8Storage"}, TypedStorage{DType::qu8, "QUInt8Storage"},
    TypedStorage{DType::qi32, "QInt32Storage"}, TypedStorage{DType::qu4x2, "QUInt4x2Storage"},
    TypedStorage{DType::qu2x4, "QUInt2x4Storage"},
};
// clang-format on

const TypedStorage* typed_storage(DType dtype) {
  const auto it = std::find_if(kTypedStorages.begin(), kTypedStorages.end(),
                               [&](const TypedStorage& storage) { return storage.dtype == dtype; });
  return it == kTypedStorages.end() ? nullptr : &*it;
}

class Encoder {
 public:
  Encoder(std::span<const Leaf> leaves, const Records& records) : leaves_(leaves), records_(records) {}

  std::vector<std::byte> encode() {
    empty_ordered_dict();
    for (std::size_t done = 0; done < leaves_.size();) {
      const std::size_t batch = std::min(PickleWriter::kBatch, leaves_.size() - done);
      out_.begin_batch(batch);
      for (const Leaf& leaf : leaves_.subspan(done, batch)) {
        out_.text(leaf.name);
        leaf.quantized != nullptr ? quantized(leaf) : tensor(*leaf.tensor);
      }
      out_.end_batch(batch);
      done += batch;
    }
    return out_.finish();
  }

 private:
  // _rebuild_tensor_v2(storage, first, shape, strides, requires_grad, hooks)
  // _rebuild_tensor_v3(the same, dtype)
  void tensor(const Tensor& tensor) {
    const bool is_typed = typed_storage(tensor.dtype()) != nullptr;
    const std::size_t count = is_typed ? 6 : 7;
    out_.global("torch._utils", is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_.begin_tuple(count);
    placement(tensor);
    out_.boolean(false);
    empty_ordered_dict();
    if (!is_typed) out_.global("torch", info(tensor.dtype()).torch_name);
    out_.end_tuple(count);
    out_.reduce();
  }

  // _rebuild_qtensor(storage, first, shape, strides, quantizer, requires_grad, hooks)
  void quantized(const Leaf& leaf) {
    out_.global("torch._utils", "_rebuild_qtensor");
    out_.begin_tuple(7);
    placement(*leaf.tensor);
    leaf.quantized->axis ? quantizer_of_channels(leaf) : quantizer(*leaf.quantized);
    out_.boolean(false);
    empty_ordered_dict();
    out_.end_tuple(7);
    out_.reduce();
  }

  void quantizer(const Composite& composite) {
    out_.begin_tuple(3);
    out_.global("torch", "per_tensor_affine");
    out_.real(composite.scale);
    out_.integer(composite.zero_point);
    out_.end_tuple(3);
  }

  // torch uses this name even if the zero points are floats.
  void quantizer_of_channels(const Leaf& leaf) {
    out_.begin_tuple(4);
    out_.global("torch", "per_channel_affine");
    tensor(*leaf.scales);
    tensor(*leaf.zero_points);
    out_.integer(std::uint64_t{*leaf.quantized->axis});
    out_.end_tuple(4);
  }

  // Every rebuild function begins with these arguments.
  void placement(const Tensor& tensor) {
    const Placement& place = records_.placements[next_++];
    storage(tensor.dtype(), place.record);
    out_.integer(place.first);
    dims(torch_shape(tensor).dims());
    dims(std::span<const std::int64_t>(place.strides));
  }

  // ("storage", class, key, device, numel)
  void storage(DType dtype, std::size_t record) {
    const Tensor& content = records_.records[record].content;
    const TypedStorage* typed = typed_storage(dtype);
    const bool counts_bytes = typed == nullptr || counts_bytes_in_storages(dtype);
    out_.begin_tuple(5);
    out_.shared_text("storage");
    typed != nullptr ? out_.global("torch", typed->name) : out_.global("torch.storage", "UntypedStorage");
    out_.shared_text(std::to_string(record));
    out_.shared_text("cpu");
    out_.integer(counts_bytes ? content.nbytes() : content.numel());
    out_.end_tuple(5);
    out_.persistent_id();
  }

  template <class Integer>
  void dims(std::span<const Integer> values) {
    out_.begin_tuple(values.size());
    for (const Integer value : values) out_.integer(value);
    out_.end_tuple(values.size());
  }

  void empty_ordered_dict() {
    out_.global("collections", "OrderedDict");
    out_.end_tuple(0);
    out_.reduce();
  }

  std::span<const Leaf> leaves_;
  const Records& records_;
  PickleWriter out_;
  std::size_t next_ = 0;  // the next placement
};

}  // namespace

std::vector<std::byte> encode_state_dict(std::span<const Leaf> leaves, const Records& records) {
  return Encoder(leaves, records).encode();
}

}  // namespace ballast::torch
