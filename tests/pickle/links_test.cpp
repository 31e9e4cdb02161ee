// The items of containers, and the offsets of nodes, compared with the plain way of keeping them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "builders/pickle_writer.hpp"
#include "formats/pickle/links.hpp"
#include "formats/pickle/machine.hpp"

namespace ballast {
namespace {

using pickle::FlatArray;
using pickle::Links;
using pickle::NodeId;

std::vector<NodeId> items_of(const Links& links, Links::Extent extent) {
  std::vector<NodeId> all;
  for (const NodeId item : links.items(extent)) all.push_back(item);
  return all;
}

TEST(PickleLinks, KeepTheItemsThatAreAppendedInAnyOrder) {
  std::mt19937 random(1);
  Links links;
  std::vector<Links::Extent> extents(5);
  std::vector<std::vector<NodeId>> expected(extents.size());
  FlatArray<NodeId> stack;
  stack.push_back(7);
  for (NodeId next = 0; next < 5'000;) {
    const std::size_t i = random() % extents.size();
    std::vector<NodeId> items(random() % 4);
    for (NodeId& item : items) item = next++;
    expected[i].insert(expected[i].end(), items.begin(), items.end());
    if (items.size() == 1) {
      links.append(items[0], extents[i]);
    } else if (items.size() == 2) {
      links.append_pair(items[0], items[1], extents[i]);
    } else {
      for (const NodeId item : items) stack.push_back(item);
      links.append_from(stack, 1, extents[i]);
    }
    ASSERT_EQ(stack.size(), 1u);
  }
  for (std::size_t i = 0; i < extents.size(); ++i) {
    EXPECT_EQ(items_of(links, extents[i]), expected[i]);
    EXPECT_EQ(links.count(extents[i]), expected[i].size());
  }
}

TEST(PickleLinks, TakeALongStackOffInOrder) {
  constexpr NodeId kCount = 3'000'000;
  FlatArray<NodeId> stack;
  for (NodeId i = 0; i < kCount; ++i) stack.push_back(i);
  Links links;
  Links::Extent extent;
  links.append_from(stack, 5, extent);
  ASSERT_EQ(stack.size(), 5u);
  EXPECT_EQ(stack[4], 4u);
  NodeId next = 5;
  for (const NodeId item : links.items(extent)) ASSERT_EQ(item, next++);
  EXPECT_EQ(next, kCount);
}

// Offsets are kept in two bytes, counted from a base: texts between the nodes make new bases necessary.
TEST(PickleGraph, SaysWhereEveryNodeLies) {
  for (const std::size_t length : {1u, 1'000u, 60'000u, 70'000u}) {
    const std::string number("K\7", 2);
    test::PickleWriter writer(4);
    writer.mark();
    std::vector<std::uint64_t> offsets;
    for (int i = 0; i < 200; ++i) {
      offsets.push_back(writer.bytes().size());
      writer.raw(number).text(std::string(length, 'x')).raw("0");
    }
    const auto source = writer.tuple().stop().source();
    pickle::Graph graph(source);
    const pickle::Pickle object = pickle::run(graph, 0, source->size_bytes(), Limits{});
    std::size_t i = 0;
    for (const NodeId item : graph.items(object.root)) EXPECT_EQ(graph[item].offset, offsets[i++]) << length;
    EXPECT_EQ(i, offsets.size());
  }
}

TEST(PickleGraph, HoldsIntegersOfEverySize) {
  std::vector<std::int64_t> integers = {0, 1, -1, 255, 65535, -32768, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  pickle::Graph graph(memory_source({}, "none"));
  std::vector<NodeId> ids;
  for (const std::int64_t value : integers) ids.push_back(graph.add_integer(value, 0));
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(graph[ids[i]].integer, integers[i]);
}

}  // namespace
}  // namespace ballast
