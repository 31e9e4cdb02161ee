// One function for each job that has a goal.
#pragma once

#include "harness.hpp"

namespace ballast::bench {

void bench_open(Report& report);
void bench_vocabulary(Report& report);
void bench_shards(Report& report);
void bench_load(Report& report);
void bench_state_dict(Report& report);
void bench_casts(Report& report);
void bench_gather(Report& report);
void bench_torch(Report& report);
void bench_convert(Report& report);
void bench_gguf(Report& report);
void bench_packed(Report& report);
void bench_quantized(Report& report);
void bench_ggml_decode(Report& report);
void bench_ggml_encode(Report& report);
void bench_merge(Report& report);
void bench_stats(Report& report);
void bench_diff(Report& report);
void bench_command(Report& report);

}  // namespace ballast::bench
