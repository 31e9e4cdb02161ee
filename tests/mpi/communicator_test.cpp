#include "mpi/communicator.hpp"

#include <gtest/gtest.h>

#include <string>

#include <ballast/load_state_dict.hpp>

#include "mpi/packing.hpp"
#include "ranks.hpp"
#include "support/expect_error.hpp"

namespace ballast::test {
namespace {

using mpi::Bytes, mpi::Communicator;

Bytes filled(std::size_t size, unsigned value) { return Bytes(size, static_cast<std::byte>(value)); }

TEST(ACommunicator, KnowsItsRankAndHowManyThereAre) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_EQ(world().rank(), static_cast<unsigned>(rank));
  EXPECT_EQ(world().size(), static_cast<unsigned>(size));
}

TEST(ACommunicator, FindsTheRanksThatCanShareMemory) {
  EXPECT_EQ(world().node().size(), ranks_a_host());
  EXPECT_EQ(world().node().rank(), world().rank() % ranks_a_host());
}

TEST(ACommunicator, IsNotMadeOfNothing) {
  EXPECT_ERROR(Communicator(MPI_COMM_NULL), Errc::invalid_argument, "MPI_COMM_NULL");
}

TEST(ACommunicator, ExchangesBytesOfDifferentSizes) {
  const Communicator all = world();
  const std::vector<Bytes> got = all.exchange(filled(1000 * all.rank(), all.rank() + 1));
  EXPECT_EQ(got.size(), all.size());
  for (unsigned rank = 0; rank < all.size(); ++rank) EXPECT_EQ(got[rank], filled(1000 * rank, rank + 1));
}

TEST(ACommunicator, ExchangesMoreThanAMessageMayHold) {
  const Communicator all = world();
  const std::size_t size = (mpi::kMostBytesAMessage / all.size()) + 12345;
  const std::vector<Bytes> got = all.exchange(filled(size, all.rank() + 1));
  for (unsigned rank = 0; rank < all.size(); ++rank) EXPECT_TRUE(got[rank] == filled(size, rank + 1)) << rank;
}

TEST(ACommunicator, BroadcastsFromAnyRankAlsoMoreThanAMessageMayHold) {
  const Communicator all = world();
  const unsigned last = all.size() - 1;
  const std::size_t size = mpi::kMostBytesAMessage + 77;
  EXPECT_TRUE(all.broadcast(all.rank() == last ? filled(size, 9) : Bytes(), last) == filled(size, 9));
  EXPECT_TRUE(all.broadcast({}).empty());
}

TEST(ACommunicator, FindsTheLargestNumber) { EXPECT_EQ(world().largest(world().rank()), world().size() - 1); }

TEST(Ranks, GoOnIfNoneFailed) {
  EXPECT_NO_THROW(world().together([] {}));
}

TEST(Ranks, AllThrowTheErrorOfTheOneThatFailed) {
  const Communicator all = world();
  const unsigned last = all.size() - 1;
  const auto error = error_of([&] {
    all.together([&] {
      if (all.rank() != last) return;
      throw Error(Errc::changed, "the file shrank")
          .in("model.gguf")
          .at_byte(17)
          .about("w")
          .of_system(5)
          .hint("try again");
    });
  });
  EXPECT_TRUE(is_error_at(error, Errc::changed, "model.gguf: the file shrank", 17));
  EXPECT_TRUE(has_hint(error, "try again"));
  EXPECT_EQ(error->where(), "model.gguf");
  EXPECT_EQ(error->name(), "w");
  EXPECT_EQ(error->system_code(), 5);
  if (all.size() > 1) {
    EXPECT_NE(error->message().find("(on rank " + std::to_string(last) + " of "), std::string::npos) << error->what();
  }
}

TEST(Ranks, ThrowTheErrorOfTheFirstIfSeveralFailed) {
  const Communicator all = world();
  EXPECT_ERROR(all.together([&] { throw Error(Errc::io, "failure " + std::to_string(all.rank())); }), Errc::io,
               "failure 0");
}

TEST(Ranks, ThrowTheSameReportIfAModelDoesNotFit) {
  const Communicator all = world();
  LoadReport report;
  report.missing = {"a"};
  report.mismatched = {{"b", DType::f16, DType::f32, {2, 3}, {3, 2}}};
  report.renamed = {{"x", "y"}};
  report.notes = {{"where", "text", Note::Kind::remark, "hint"}};
  report.suggestions = {{"a", "aa"}};
  bool was_thrown = false;
  try {
    all.together([&] {
      if (all.rank() == 0) throw StateDictError(report);
    });
  } catch (const StateDictError& error) {
    was_thrown = true;
    EXPECT_EQ(to_string(error.report()), to_string(report));
    EXPECT_STREQ(error.what(), StateDictError(report).what());
    EXPECT_EQ(error.hint().text(), "did you mean \"aa\" for \"a\"?");
  }
  EXPECT_TRUE(was_thrown);
}

TEST(Ranks, ThrowAnErrorForWhateverElseOneThrew) {
  const Communicator all = world();
  EXPECT_ERROR(all.together([] { throw std::bad_alloc(); }), Errc::limit, "not enough memory");
  EXPECT_ERROR(all.together([] { throw std::runtime_error("of a program"); }), Errc::io, "of a program");
  EXPECT_ERROR(all.together([] { throw 1; }), Errc::io, "no exception of C++");
}

TEST(AnUnpacker, RefusesBytesThatEndEarly) {
  mpi::Packer packer;
  packer.text("text");
  Bytes bytes = packer.take();
  EXPECT_EQ(mpi::Unpacker(bytes).text(), "text");
  bytes.pop_back();
  EXPECT_ERROR(mpi::Unpacker(bytes).text(), Errc::mismatch, "different versions");
}

}  // namespace
}  // namespace ballast::test
