#include <ballast/error.hpp>
#include <ballast/mpi.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "communicator.hpp"
#include "needs.hpp"
#include "open_together.hpp"
#include "packing.hpp"
#include "piece_bytes.hpp"
#include "received_parts.hpp"
#include "schedule.hpp"
#include "transfer.hpp"

namespace ballast::mpi {
namespace {

const Note kNoSharedMemory = {"/dev/shm",
                              "the system gives too little memory to be shared, so every rank has its own copy",
                              Note::Kind::remark, "make /dev/shm larger, or do not share"};

// What has to be the same on all ranks before they send each other bytes: each by its digest.
enum Same : std::size_t { kSameRules, kSameTensors, kSameOptions, kSameCount };
using SameDigests = std::array<std::uint64_t, kSameCount>;

constexpr std::string_view kDiffers[kSameCount] = {
    "the rules are not those of rank 0",
    "the checkpoint is not the one that rank 0 has opened",
    "the options (memory_bytes, share, read_once) are not those of rank 0",
};

class Loading {
 public:
  Loading(const Communicator& all, const LoadOptions& options) : all_(all), node_(all_.node()), options_(options) {}

  Loaded run(const std::function<std::vector<BoundTensor>()>& bind_model, const std::string& target,
             const std::vector<RankRule>& rules) {
    const auto start = std::chrono::steady_clock::now();
    all_.together([&] {
      if (options_.load.slice)
        throw Error(Errc::invalid_argument, "the rules say which slice each rank gets, so there is none to be given");
      model_ = bind_model();
    });
    // Whether something in the files is dangerous, one rank finds out for all.
    opened_ = open_together(all_, target, options_.open, [&](const Checkpoint& checkpoint) {
      if (!options_.load.allow_dangerous) refuse_dangerous(checkpoint);
    });
    options_.load.allow_dangerous = true;
    SameDigests mine{};
    all_.together([&] {
      plan(rules);
      mine = same_digests(rules);
    });
    compare_with_others(mine);
    find_demand();
    receive();
    Loaded loaded;
    loaded.report = fill();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    loaded.report.seconds = elapsed.count();
    loaded.ranks = exchange_traffic(elapsed.count());
    return loaded;
  }

 private:
  void plan(const std::vector<RankRule>& rules) {
    plan_ = plan_ranks(opened_.checkpoint, all_.size(), rules);
    sliced_ = take_slice(opened_.checkpoint, plan_.rank(all_.rank()));
    extents_ = extents_of(opened_.checkpoint);
    fields_ = find_needs(model_, opened_.checkpoint, sliced_, options_.load);
    number_tensors();
  }

  SameDigests same_digests(const std::vector<RankRule>& rules) const {
    Packer packed_rules, tensors, options;
    for (const RankRule& rule : rules) {
      packed_rules.text(rule.match);
      packed_rules.number(static_cast<std::uint64_t>(rule.split));
      packed_rules.number(rule.unit);
    }
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
      const RankedTensor& tensor = plan_.tensors[i];
      tensors.text(tensor.name);
      tensors.text(name(tensor.dtype));
      tensors.number(tensor.shape.rank());
      for (const std::uint64_t dim : tensor.shape) tensors.number(dim);
      const TensorPlace& place = extents_.tensors[i];
      for (const std::uint64_t number : {std::uint64_t{place.extent}, place.first, place.bytes}) tensors.number(number);
    }
    for (const Extent& extent : extents_.all) {
      for (const std::uint64_t number : {extent.offset, extent.size, extent.granule}) tensors.number(number);
    }
    options.number(piece_bytes(options_.memory_bytes));
    options.number(options_.share ? 1 : 0);
    options.number(static_cast<std::uint64_t>(options_.read_once));
    return {digest_of(packed_rules.take()), digest_of(tensors.take()), digest_of(options.take())};
  }

  // From here on the ranks send each other bytes, and nothing that says what these are.
  void compare_with_others(const SameDigests& mine) const {
    const std::vector<Bytes> all = all_.exchange(std::as_bytes(std::span(mine)));
    all_.together([&] {
      const auto first = Unpacker(all.front()).raw(sizeof mine);
      const auto own = std::as_bytes(std::span(mine));
      for (std::size_t i = 0; i < kSameCount; ++i) {
        const std::size_t at = i * sizeof(std::uint64_t);
        if (std::ranges::equal(first.subspan(at, sizeof(std::uint64_t)), own.subspan(at, sizeof(std::uint64_t))))
          continue;
        throw Error(Errc::mismatch, std::string(kDiffers[i]))
            .hint("give all ranks the same arguments, and the same files");
      }
    });
  }

  // The tensors of the slice are some of the checkpoint's, in the same order.
  void number_tensors() {
    std::size_t number = 0;
    for (const auto& [name, tensor] : sliced_) {
      while (opened_.checkpoint.tensors[number].name != name) ++number;
      numbers_.push_back(number++);
    }
    same_ = same_tensors(plan_, extents_);
  }

  // What every rank needs, and which ranks share memory.
  void find_demand() {
    std::vector<Need> mine(plan_.tensors.size(), Need::none);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      Need& need = mine[same_[numbers_[i]]];
      need = std::max(need, fields_.tensors[i]);
    }
    if (!options_.share) std::ranges::replace(mine, Need::view, Need::copy);
    for (const Bytes& needs : all_.exchange(std::as_bytes(std::span(mine)))) {
      needs_.emplace_back();
      for (const std::byte need : needs) needs_.back().push_back(static_cast<Need>(need));
    }
    const Bytes leader = node_.broadcast(packed_number(all_.rank()));
    for (const Bytes& number : all_.exchange(leader))
      node_of_.push_back(static_cast<unsigned>(Unpacker(number).number()));
    for (const Bytes& number : group().exchange(packed_number(all_.rank())))
      readers_.push_back(static_cast<unsigned>(Unpacker(number).number()));
  }

  static Bytes packed_number(std::uint64_t number) {
    Packer packer;
    packer.number(number);
    return packer.take();
  }

  const Communicator& group() const noexcept { return options_.read_once == ReadOnce::node ? node_ : all_; }

  // Only the ranks that send to each other count.
  void make_demand() {
    demand_.emplace(Demand{plan_, extents_, needs_, node_of_, readers_});
    for (unsigned rank = 0; rank < all_.size(); ++rank) {
      const bool is_here = std::ranges::find(readers_, rank) != readers_.end();
      if (!is_here) std::ranges::fill(demand_->needs[rank], Need::none);
    }
    parts_ = std::make_shared<ReceivedParts>(*demand_, all_.rank());
  }

  // A node whose system gives too little memory to be shared does without.
  void share_memory_of_nodes() {
    all_.together([&] { make_demand(); });
    auto memory = share_memory(node_, parts_->shared_bytes());
    const bool is_without = memory == nullptr && parts_->shared_bytes() != 0;
    std::vector<bool> without;
    for (const Bytes& number : all_.exchange(packed_number(is_without ? 1 : 0)))
      without.push_back(Unpacker(number).number() != 0);
    all_.together([&] {
      for (unsigned rank = 0; rank < all_.size(); ++rank) {
        if (without[rank]) std::ranges::replace(needs_[rank], Need::view, Need::copy);
      }
      if (std::ranges::count(without, true) != 0) make_demand();
      if (memory) parts_->use_shared(std::move(memory));
      shares_too_little_ = is_without;
    });
  }

  void receive() {
    share_memory_of_nodes();
    std::optional<Schedule> schedule;
    std::optional<Transfer> transfer;
    std::optional<TransferPlan> plan;
    all_.together([&] {
      use_model_memory();
      parts_->allocate();
      schedule = make_schedule(*demand_, piece_bytes(options_.memory_bytes));
      const auto memory_of = [this](const Target& target) { return parts_->memory_of(target); };
      plan.emplace(TransferPlan{*demand_, *schedule, memory_of, options_.load.progress});
      transfer.emplace(all_, group(), *plan);
    });
    transfer->run();
    all_.together([&] { parts_->finish(); });
    traffic_.sent = transfer->sent();
    traffic_.received = transfer->received();
    traffic_.twice = transfer->twice();
    traffic_.held = parts_->own_bytes() + (node_.rank() == 0 ? parts_->shared_bytes() : 0);
  }

  // Fields with memory of their own receive their bytes where they shall be.
  void use_model_memory() {
    for (const DirectField& direct : fields_.direct) {
      const std::size_t tensor = numbers_[direct.tensor];
      BoundTensor& field = model_[direct.field];
      if (same_[tensor] != tensor || !parts_->is_own(tensor)) continue;
      const Tensor& part = sliced_.tensors[direct.tensor].tensor;
      const std::span<std::byte> memory = field.prepare(part.dtype(), part.shape());
      if (memory.size() != part.nbytes()) continue;  // load_bound() says what is wrong
      parts_->use(tensor, memory);
      field.prepare = [memory](DType, const Shape&) { return memory; };  // not once more: the bytes are there then
    }
  }

  // First without the model, since only now the values of tied names can be compared.
  LoadReport fill() {
    LoadReport report;
    LoadStateDictOptions options = options_.load;
    options.mode = LoadMode::mapped;
    options.consume = true;
    options.progress = {};
    Checkpoint received;
    all_.together([&] {
      received = this->received();
      if (!options.tied.empty()) check_tied(received, options);
    });
    all_.together([&] {
      // From here on, the model alone decides how long memory is kept.
      parts_.reset();
      opened_.checkpoint = {};
      sliced_ = {};
      report = ballast::load_bound(std::move(model_), std::move(received), options);
    });
    if (shares_too_little_) report.notes.push_back(kNoSharedMemory);
    return report;
  }

  void check_tied(const Checkpoint& received, LoadStateDictOptions options) const {
    std::vector<BoundTensor> model = model_;
    for (BoundTensor& tensor : model) {
      if (tensor.assign) tensor.assign = [](Tensor) {};
    }
    options.device = Device::Kind::meta;
    options.map_location.clear();
    options.consume = false;
    ballast::load_bound(std::move(model), received, options);
  }

  Checkpoint received() const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const Tensor& tensor = sliced_.tensors[i].tensor;
      const bool is_empty = tensor.nbytes() == 0 || !tensor.storage() || !tensor.has_data();
      tensors.push_back(is_empty ? tensor : with_storage(tensor, parts_->storage(same_[numbers_[i]], tensor.nbytes())));
    }
    return with_tensors(opened_.checkpoint, sliced_, std::move(tensors));
  }

  RankReport exchange_traffic(double seconds) {
    traffic_.opening = opened_.opening_bytes;
    traffic_.read = opened_.read->load() - opened_.opening_bytes;
    Packer packer;
    packer.raw(std::as_bytes(std::span(&traffic_, 1)));
    packer.raw(std::as_bytes(std::span(&seconds, 1)));
    RankReport report;
    for (const Bytes& bytes : all_.exchange(packer.take())) {
      Unpacker in(bytes);
      RankTraffic traffic;
      double took = 0;
      std::ranges::copy(in.raw(sizeof traffic), std::as_writable_bytes(std::span(&traffic, 1)).begin());
      std::ranges::copy(in.raw(sizeof took), std::as_writable_bytes(std::span(&took, 1)).begin());
      report.ranks.push_back(traffic);
      report.seconds = std::max(report.seconds, took);
    }
    return report;
  }

  const Communicator& all_;
  Communicator node_;
  LoadOptions options_;
  std::vector<BoundTensor> model_;
  OpenedTogether opened_;
  RankPlan plan_;
  Checkpoint sliced_;  // this rank's parts
  Extents extents_;
  FieldNeeds fields_;
  std::vector<std::size_t> numbers_;  // of the tensors of the slice in the checkpoint
  std::vector<std::size_t> same_;  // by the checkpoint's tensors: the first that is the same bytes, cut in the same way
  std::vector<std::vector<Need>> needs_;  // by rank
  std::vector<unsigned> node_of_;         // by rank: the first rank of its node
  std::vector<unsigned> readers_;
  std::optional<Demand> demand_;
  std::shared_ptr<ReceivedParts> parts_;
  bool shares_too_little_ = false;
  RankTraffic traffic_;
};

}  // namespace

Loaded load_bound(MPI_Comm ranks, const std::function<std::vector<BoundTensor>()>& bind_model,
                  const std::string& target, const std::vector<RankRule>& rules, const LoadOptions& options) {
  const Communicator all(ranks);
  std::optional<Loading> loading;  // outlives a failure: the destructor is collective
  return all.or_end_the_job([&] { return loading.emplace(all, options).run(bind_model, target, rules); });
}

}  // namespace ballast::mpi
