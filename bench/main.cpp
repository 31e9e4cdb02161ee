// Prints the table of bench/README.md. Fails if a goal is missed, and says which goal.
#include <malloc.h>

#include <string>

#include "benchmarks.hpp"

int main(int argc, char** argv) {
  // A program opens a checkpoint once, in memory that it has not used before. Left to itself, malloc would soon hand
  // out the same warm pages in every round; so large blocks come fresh from the system, on both sides.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_TRIM_THRESHOLD, 128 * 1024);

  ballast::bench::Report report(argc > 1 ? argv[1] : "");
  ballast::bench::bench_open(report);
  ballast::bench::bench_vocabulary(report);
  ballast::bench::bench_shards(report);
  ballast::bench::bench_load(report);
  ballast::bench::bench_state_dict(report);
  ballast::bench::bench_casts(report);
  ballast::bench::bench_gather(report);
  ballast::bench::bench_torch(report);
  ballast::bench::bench_convert(report);
  ballast::bench::bench_gguf(report);
  ballast::bench::bench_packed(report);
  ballast::bench::bench_quantized(report);
  ballast::bench::bench_ggml_decode(report);
  ballast::bench::bench_ggml_encode(report);
  ballast::bench::bench_merge(report);
  ballast::bench::bench_stats(report);
  ballast::bench::bench_diff(report);
  ballast::bench::bench_command(report);
  return report.finish();
}
