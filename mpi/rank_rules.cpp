// Rules that rank 0 reads for all ranks.
#include <ballast/mpi.hpp>

#include "communicator.hpp"
#include "packing.hpp"

namespace ballast::mpi {

std::vector<RankRule> load_rank_rules(MPI_Comm ranks, const std::string& path) {
  const Communicator all(ranks);
  return all.or_end_the_job([&] {
    std::vector<RankRule> rules;
    Bytes packed;
    all.together([&] {
      if (all.rank() != 0) return;
      rules = ballast::load_rank_rules(path);
      Packer packer;
      packer.number(rules.size());
      for (const RankRule& rule : rules) {
        packer.text(rule.match);
        packer.number(static_cast<std::uint64_t>(rule.split));
        packer.number(rule.unit);
      }
      packed = packer.take();
    });
    packed = all.broadcast(std::move(packed));
    all.together([&] {
      if (all.rank() == 0) return;
      Unpacker in(packed);
      for (std::uint64_t left = in.number(); left != 0; --left) {
        RankRule& rule = rules.emplace_back();
        rule.match = in.text();
        rule.split = static_cast<RankSplit>(in.number());
        rule.unit = in.number();
      }
    });
    return rules;
  });
}

}  // namespace ballast::mpi
