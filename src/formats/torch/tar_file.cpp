// The tar of 2016 and early 2017 (PyTorch 0.1):
//   sys_info   a pickle of the writer's byte order and sizes of types
//   storages   a pickle of their number; for each a pickle of (key, location, class), the number of elements (i64) and
//              the elements; at the end a pickle of the views: [(key, key of the whole, offset, number of elements)]
//   tensors    a pickle of their number; for each a pickle of (key, key of its storage, class), the rank (i32), four
//              bytes of no meaning, then sizes, strides and the offset (i64 each)
//   pickle     the object; its persistent ids are keys of tensors or storages
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <array>
#include <set>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/name_hash.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/archive/tar.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/globals_check.hpp"
#include "formats/torch/python_text.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/types.hpp"
#include "formats/torch/walk.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;
using pickle::Pickle;

// Reads a member that holds pickles and numbers in turn.
class MemberReader {
 public:
  MemberReader(const archive::Tar& tar, const archive::TarMember& member, const Limits& limits,
               std::vector<TarPickle>& pickles)
      : source_(archive::member_source(tar, member)),
        graph_(source_),
        limits_(limits),
        name_(member.name),
        pickles_(pickles) {}

  const Graph& graph() const noexcept { return graph_; }
  const SourcePtr& source() const noexcept { return source_; }
  std::uint64_t position() const noexcept { return at_; }

  NodeId pickle() {
    pickles_.push_back({name_, at_, source_->size_bytes()});  // until it is known where it ends
    const Pickle next = pickle::run(graph_, at_, source_->size_bytes(), limits_);
    pickles_.back().last = at_ = next.end;
    return next.root;
  }

  // Each counted thing takes at least one byte, so there cannot be more than the bytes that remain.
  std::uint64_t count(std::string_view what) {
    const NodeId node = pickle();
    const bool is_count = graph_.kind(node) == Kind::integer && graph_[node].integer >= 0;
    if (!is_count || static_cast<std::uint64_t>(graph_[node].integer) > source_->size_bytes() - at_)
      throw Error(Errc::malformed, fmt::format("the number of {} makes no sense", what)).at_byte(graph_[node].offset);
    return static_cast<std::uint64_t>(graph_[node].integer);
  }

  std::vector<std::uint64_t> numbers(std::size_t count, std::string_view what) {
    std::vector<std::byte> bytes(count * 8);
    source_->read(at_, bytes);
    Cursor cursor(bytes, at_);
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(cursor.u64(what));
      if (values.back() > INT64_MAX) throw Error(Errc::malformed, fmt::format("the {} is negative", what)).at_byte(at_);
    }
    at_ += bytes.size();
    return values;
  }

  std::uint32_t rank() {
    std::array<std::byte, 8> bytes;  // the last four are whatever the writer's memory held
    source_->read(at_, bytes);
    at_ += bytes.size();
    return Cursor(bytes, at_).u32("rank");
  }

  void skip(std::uint64_t size) { at_ += size; }

 private:
  SourcePtr source_;
  Graph graph_;
  const Limits& limits_;
  std::string name_;
  std::vector<TarPickle>& pickles_;
  std::uint64_t at_ = 0;
};

// Python 3 wrote integers as keys, Python 2 text.
std::string key_of(const Graph& graph, NodeId node) {
  if (graph.kind(node) == Kind::persistent) node = graph.persistent_id(node);
  return key_text(graph, node);
}

class TarTensors final : public StorageTable {
 public:
  // Dangerous and unknown globals of the members go to `checkpoint`; the ranges of their pickles go to `pickles`.
  TarTensors(const archive::Tar& tar, const Limits& limits, Checkpoint& checkpoint, std::vector<TarPickle>& pickles)
      : checkpoint_(checkpoint), pickles_(pickles) {
    read_storages(tar, limits);
    if (tar.find("tensors")) read_tensors(tar, limits);
  }

  const std::vector<std::pair<std::string, Stored>>& storages() const noexcept { return in_order_; }

  std::optional<Stored> find(const Graph& graph, NodeId node) override {
    const auto found = storages_.find(key_of(graph, node));
    if (found == storages_.end()) return std::nullopt;
    used_.insert(found->second.storage.get());
    return found->second;
  }
  std::optional<Tensor> find_tensor(const Graph& graph, NodeId node) override {
    const auto found = tensors_.find(key_of(graph, node));
    if (found == tensors_.end()) return std::nullopt;
    used_.insert(found->second.storage().get());
    return found->second;
  }

  // Views are parts of other storages, and count with those.
  Unused unused() const override {
    Unused unused;
    for (const auto& [key, stored] : in_order_) {
      if (stored.size_bytes == stored.storage->size_bytes() && !used_.contains(stored.storage.get()))
        unused.add(key, stored.size_bytes);
    }
    return unused;
  }

 private:
  static const archive::TarMember& require(const archive::Tar& tar, std::string_view name) {
    if (const auto* member = tar.find(name)) return *member;
    throw Error(Errc::malformed, fmt::format("the tar has no member {}", quote(name)));
  }

  void add_storage(const std::string& key, const Stored& stored) {
    if (!storages_.emplace(key, stored).second)
      throw Error(Errc::malformed, fmt::format("storage {} is there twice", quote(key)));
    in_order_.emplace_back(key, stored);
  }

  void read_storages(const archive::Tar& tar, const Limits& limits) {
    MemberReader in(tar, require(tar, "storages"), limits, pickles_);
    try {
      const std::uint64_t count = in.count("storages");
      for (std::uint64_t i = 0; i < count; ++i) read_storage(in);
      if (in.position() < in.source()->size_bytes()) read_views(in);
      check_globals(in.graph(), Safety::inert, "storages", checkpoint_);
    } catch (Error& error) {
      throw error.in(in.source()->name());
    }
  }

  void read_storage(MemberReader& in) {
    const Arguments entry(in.graph(), in.pickle(), "storage");
    entry.require(3);
    const auto is_global = in.graph().kind(entry[2]) == Kind::global;
    const auto type =
        is_global ? storage_class(in.graph().global(entry[2]).module, in.graph().global(entry[2]).name) : std::nullopt;
    if (!type || !type->dtype) entry.complain(2, "the class of the storage is unknown");
    const std::uint64_t count = in.numbers(1, "number of elements")[0];
    const auto size = checked_mul(count, info(*type->dtype).block_bytes);
    if (!size || !is_inside(in.position(), *size, in.source()->size_bytes()))
      entry.complain(0, fmt::format("the storage has {} elements, more than the member has left", count));
    add_storage(key_of(in.graph(), entry[0]),
                {source_storage(in.source(), in.position(), *size), 0, *size, type->dtype});
    in.skip(*size);
  }

  void read_views(MemberReader& in) {
    const NodeId list = in.pickle();
    if (in.graph().kind(list) != Kind::list) return;
    for (const NodeId item : in.graph().items(list)) {
      const Arguments view(in.graph(), item, "storage view");
      view.require(4);
      const auto whole = storages_.find(key_of(in.graph(), view[1]));
      if (whole == storages_.end()) view.complain(1, "the whole is no storage of this file");
      const Stored root = whole->second;
      const std::uint64_t width = info(*root.dtype).block_bytes;
      const auto first = checked_mul(view.count(2, "offset"), width);
      const auto size = checked_mul(view.count(3, "number of elements"), width);
      if (!first || !size || !is_inside(*first, *size, root.size_bytes))
        view.complain(2, "it reaches outside the whole");
      add_storage(key_of(in.graph(), view[0]), {root.storage, root.offset + *first, *size, root.dtype});
    }
  }

  void read_tensors(const archive::Tar& tar, const Limits& limits) {
    MemberReader in(tar, require(tar, "tensors"), limits, pickles_);
    try {
      const std::uint64_t count = in.count("tensors");
      for (std::uint64_t i = 0; i < count; ++i) read_tensor(in, limits);
      check_globals(in.graph(), Safety::inert, "tensors", checkpoint_);
    } catch (Error& error) {
      throw error.in(in.source()->name());
    }
  }

  void read_tensor(MemberReader& in, const Limits& limits) {
    const Arguments entry(in.graph(), in.pickle(), "tensor");
    entry.require(3);
    const std::uint64_t rank = in.rank();
    if (rank > limits.max_rank) entry.complain(0, fmt::format("the tensor has {} dimensions", rank));
    const auto sizes = in.numbers(static_cast<std::size_t>(rank), "size");
    const auto steps = in.numbers(static_cast<std::size_t>(rank), "stride");
    const std::uint64_t offset = in.numbers(1, "offset")[0];
    const auto storage = storages_.find(key_of(in.graph(), entry[1]));
    if (storage == storages_.end()) {
      // A tensor without elements needs no storage.
      if (Shape(sizes).numel() != 0) entry.complain(1, "its storage is not in this file");
      return add_tensor(key_of(in.graph(), entry[0]), Tensor(DType::f32, Shape(sizes), nullptr));
    }
    add_tensor(key_of(in.graph(), entry[0]), view_of(storage->second, *storage->second.dtype, offset, Shape(sizes),
                                                     Strides(steps.begin(), steps.end())));
  }

  void add_tensor(const std::string& key, Tensor tensor) {
    if (!tensors_.emplace(key, std::move(tensor)).second)
      throw Error(Errc::malformed, fmt::format("tensor {} is there twice", quote(key)));
  }

  Checkpoint& checkpoint_;
  std::vector<TarPickle>& pickles_;
  NameMap<Stored> storages_;
  std::vector<std::pair<std::string, Stored>> in_order_;
  std::set<const Storage*> used_;
  NameMap<Tensor> tensors_;
};

}  // namespace

std::vector<TarPickle> find_tar_pickles(const archive::Tar& tar, const Limits& limits) {
  Checkpoint unused;
  std::vector<TarPickle> pickles;
  try {
    TarTensors(tar, limits, unused, pickles);
  } catch (const Error&) {
    // the last pickle then reaches to the end of its member
  }
  return pickles;
}

Checkpoint read_tar(const SourcePtr& source, const ReadOptions& options) try {
  if (options.safety == Safety::strict) {
    throw Error(Errc::unsafe, "a tar of PyTorch 0.1, which weights_only does not allow")
        .hint("Ballast runs nothing of it; leave out " + mention(Remedy::weights_only) + " to open the file");
  }
  const archive::Tar tar = archive::read_tar(source, options.limits);
  const auto* object = tar.find("pickle");
  if (!object || !tar.find("storages")) {
    throw Error(Errc::unsupported, "a tar archive, and not one of PyTorch's").hint("unpack it first");
  }
  Checkpoint checkpoint;
  checkpoint.format = Format::torch_tar;
  std::vector<TarPickle> pickles;
  TarTensors tensors(tar, options.limits, checkpoint, pickles);
  const auto pickled = archive::member_source(tar, *object);
  Graph graph(pickled);
  const Pickle root = pickle::run(graph, 0, pickled->size_bytes(), options.limits);
  check_globals(graph, options.safety, "pickle", checkpoint);
  if (tar.find("tensors")) {
    Rebuilder rebuilder(graph, tensors, options.limits, options.nested);
    walk(graph, root.root, "", rebuilder, options.limits, checkpoint);
    note_unused(tensors, checkpoint);
    if (options.objects != nullptr) keep_objects(graph, root.root, rebuilder, *options.objects);
    return checkpoint;
  }
  for (const auto& [key, stored] : tensors.storages()) {
    const std::uint64_t count = stored.size_bytes / info(*stored.dtype).block_bytes;
    checkpoint.tensors.insert("storages." + key, Tensor(*stored.dtype, {count}, stored.storage, stored.offset));
  }
  checkpoint.notes.push_back(
      {source->name(), "the tar has no member \"tensors\": its storages are listed instead", Note::Kind::remark});
  return checkpoint;
} catch (Error& error) {
  throw error.in(source->name());
}

}  // namespace ballast::torch
