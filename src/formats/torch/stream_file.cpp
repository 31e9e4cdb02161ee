// The stream of the years before 1.6:
//   1. a pickle of the magic number
//   3. a pickle of the writer's byte order and sizes of types, which nobody reads
//   3. a pickle of the writer's byte order and sizes of types, which nobody reads
//   4. a pickle of the object
//   5. a pickle of the list of storage keys
//   6. for each key: the number of elements (i64), then the elements, always little-endian
#include <fmt/format.h>
#include <ballast/error.hpp>

#include <set>

#include "core/checked.hpp"
#include "core/cursor.hpp"
#include "core/name_hash.hpp"
#include "core/text.hpp"
#include "formats/pickle/machine.hpp"
#include "formats/pickle/scan.hpp"
#include "formats/torch/globals_check.hpp"
#include "formats/torch/read.hpp"
#include "formats/torch/walk.hpp"
#include "tensor/source_storage.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;
using pickle::Pickle;

constexpr std::string_view kMagicNumber = "119547037146038801333356";  // 0x1950a86a20f9469cfc6c

bool is_magic(const Graph& graph, NodeId node) {
  return graph.kind(node) == Kind::big_integer && graph.chars(node) == kMagicNumber;
}

std::uint64_t read_count(const Source& source, std::uint64_t offset) {
  std::array<std::byte, 8> bytes;
  source.read(offset, bytes);
  return Cursor(bytes, offset).u64("number of elements");
}

class StreamStorages final : public StorageTable {
 public:
  // `first` is the byte after the list of keys.
  StreamStorages(const Graph& graph, NodeId keys, std::uint64_t first) {
    const auto widths = element_bytes(graph);
    if (graph.kind(keys) != Kind::list) throw Error(Errc::malformed, "the storage keys are no list").at_byte(first);
    for (const NodeId node : graph.items(keys)) {
      const std::string key(graph.chars(node));
      const auto width = widths.find(key);
      if (width == widths.end()) {
        throw Error(Errc::malformed,
                    fmt::format("storage {} is used by no tensor, so its size cannot be told", quote(key)))
            .at_byte(graph[node].offset);
      }
      first = add(*graph.source(), graph.source(), key, width->second, first);
    }
    end_ = first;
  }

  std::uint64_t end() const noexcept { return end_; }

  std::optional<Stored> find(const Graph& graph, NodeId node) override {
    const auto id = parse_persistent_id(graph, node);
    if (!id) return std::nullopt;
    const auto found = storages_.find(id->key);
    if (found == storages_.end()) {
      throw Error(Errc::malformed, fmt::format("storage {} is not in the list of keys", quote(id->key)))
          .at_byte(graph[node].offset);
    }
    used_.insert(found->first);
    const std::uint64_t stored = found->second->size_bytes();
    if (id->size_bytes() != stored) {
      throw Error(Errc::malformed, fmt::format("storage {} has {} bytes in the pickle, but {} in the file",
                                               quote(id->key), id->size_bytes(), stored))
          .at_byte(graph[node].offset);
    }
    if (!id->view) return Stored{found->second, 0, stored, id->dtype};
    const auto first = checked_mul(id->view->first, id->element_bytes());
    const auto size = checked_mul(id->view->count, id->element_bytes());
    if (!first || !size || !is_inside(*first, *size, stored)) {
      throw Error(Errc::malformed, fmt::format("a view of storage {} reaches outside it", quote(id->key)))
          .at_byte(graph[node].offset);
    }
    return Stored{found->second, *first, *size, id->dtype};
  }

  Unused unused() const override {
    Unused unused;
    for (const std::string& key : in_order_) {
      if (!used_.contains(key)) unused.add(key, storages_.at(key)->size_bytes());
    }
    return unused;
  }

 private:
  // Only the ids that use a storage say how wide its elements are; the first one decides.
  static NameMap<std::uint64_t> element_bytes(const Graph& graph) {
    NameMap<std::uint64_t> widths;
    for (NodeId node = 0; node < graph.size(); ++node) {
      if (graph.kind(node) != Kind::persistent) continue;
      if (const auto id = parse_persistent_id(graph, node)) widths.try_emplace(id->key, id->element_bytes());
    }
    return widths;
  }

  std::uint64_t add(const Source& source, const SourcePtr& pointer, const std::string& key, std::uint64_t width,
                    std::uint64_t first) {
    const std::uint64_t count = read_count(source, first);
    const std::uint64_t data = first + 8;
    const auto size = checked_mul(count, width);
    if (!size || !is_inside(data, *size, source.size_bytes())) {
      throw Error(Errc::malformed, fmt::format("storage {} has {} elements of {} bytes, more than the file has left",
                                               quote(key), count, width))
          .at_byte(first);
    }
    if (!storages_.emplace(key, source_storage(pointer, data, *size)).second)
      throw Error(Errc::malformed, fmt::format("storage {} is listed twice", quote(key))).at_byte(first);
    in_order_.push_back(key);
    return data + *size;
  }

  NameMap<StoragePtr> storages_;
  std::vector<std::string> in_order_;
  std::set<std::string_view> used_;
  std::uint64_t end_ = 0;
};

// A bare pickle has no storages beside it.
class NoStorages final : public StorageTable {
 public:
  std::optional<Stored> find(const Graph& graph, NodeId node) override {
    if (!parse_persistent_id(graph, node)) return std::nullopt;
    throw Error(Errc::unsupported, "a storage that lies in no file");
  }
};

// The rest does not belong to the checkpoint, but another program may read on: what is named there counts.
void note_rest(const SourcePtr& source, std::uint64_t end, const Limits& limits, Checkpoint& checkpoint) {
  if (end == source->size_bytes()) return;
  checkpoint.notes.push_back(
      {source->name(), fmt::format("{} bytes after the checkpoint are ignored", source->size_bytes() - end)});
  pickle::Scan scan;
  pickle::scan_pickles(source, end, source->size_bytes(), "", limits, scan);
  for (Global& global : scan.globals) {
    if (global.verdict == Verdict::dangerous) checkpoint.dangerous.push_back(std::move(global));
  }
}

struct Stream {
  bool is_stream = false;
  Pickle object;  // the first pickle, if it is not the magic number
  Pickle keys{};
};

// Runs the other four of the five pickles; none if the first one is not the magic number.
Stream run_stream(Graph& graph, const Pickle& first, const Limits& limits) {
  const std::uint64_t last = graph.source()->size_bytes();
  if (!is_magic(graph, first.root)) return {false, first};
  const Pickle version = pickle::run(graph, first.end, last, limits);
  const Pickle system = pickle::run(graph, version.end, last, limits);
  const Pickle object = pickle::run(graph, system.end, last, limits);
  return {true, object, pickle::run(graph, object.end, last, limits)};
}

Checkpoint read_object(Graph& graph, const Pickle& object, const ReadOptions& options) {
  Checkpoint checkpoint;
  checkpoint.format = Format::pickle;
  check_globals(graph, options.safety, "", checkpoint);
  NoStorages storages;
  Rebuilder rebuilder(graph, storages, options.limits, options.nested);
  walk(graph, object.root, "", rebuilder, options.limits, checkpoint);
  note_rest(graph.source(), object.end, options.limits, checkpoint);
  if (options.objects != nullptr) keep_objects(graph, object.root, rebuilder, *options.objects);
  return checkpoint;
}

}  // namespace

Checkpoint read_pickle(const SourcePtr& source, std::uint64_t first, const ReadOptions& options) try {
  Graph graph(source);
  return read_object(graph, pickle::run(graph, first, source->size_bytes(), options.limits), options);
} catch (Error& error) {
  throw error.in(source->name());
}

FirstPickle run_first_pickle(const SourcePtr& source, const Limits& limits) {
  Graph graph(source);
  const Pickle pickle = pickle::run(graph, 0, source->size_bytes(), limits);
  return {std::move(graph), pickle};
}

std::optional<StreamExtent> stream_extent(const SourcePtr& source, const Limits& limits) try {
  auto [graph, first] = run_first_pickle(source, limits);
  const Stream stream = run_stream(graph, first, limits);
  if (!stream.is_stream) return std::nullopt;
  const StreamStorages storages(graph, stream.keys.root, stream.keys.end);
  return StreamExtent{stream.keys.end, storages.end()};
} catch (const Error&) {
  return std::nullopt;
}

Checkpoint read_stream(FirstPickle begun, const ReadOptions& options) try {
  Graph& graph = begun.graph;
  const Stream stream = run_stream(graph, begun.pickle, options.limits);
  if (!stream.is_stream) return read_object(graph, stream.object, options);

  Checkpoint checkpoint;
  checkpoint.format = Format::torch_legacy;
  check_globals(graph, options.safety, "", checkpoint);
  StreamStorages storages(graph, stream.keys.root, stream.keys.end);
  Rebuilder rebuilder(graph, storages, options.limits, options.nested);
  walk(graph, stream.object.root, "", rebuilder, options.limits, checkpoint);
  note_unused(storages, checkpoint);
  note_rest(graph.source(), storages.end(), options.limits, checkpoint);
  if (options.objects != nullptr) keep_objects(graph, stream.object.root, rebuilder, *options.objects);
  return checkpoint;
} catch (Error& error) {
  throw error.in(begun.graph.source()->name());
}

Checkpoint read_stream(const SourcePtr& source, const ReadOptions& options) try {
  return read_stream(run_first_pickle(source, options.limits), options);
} catch (Error& error) {
  throw error.in(source->name());
}

}  // namespace ballast::torch
