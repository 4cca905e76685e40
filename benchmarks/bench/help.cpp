// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

const char* const harness::help_text = R"text(usage: meshwise-bench [OPERATION...] [OPTION...]
       meshwise-run -n N meshwise-bench [OPERATION...] [OPTION...]

Measures collectives of meshwise over a range of sizes, and checks their results. The options, the columns and the
bandwidths are those of nccl-tests. Started by itself it starts its ranks; under meshwise-run it is one of them.

operations (default all_reduce; several, or all)
  all_reduce reduce_scatter all_gather broadcast reduce gather scatter all_to_all all_to_all_v send_recv barrier
  send_recv: each rank sends to the next one and receives from the one before, at the same time.

sizes
  -b, --minbytes SIZE      the first one (8); SIZE is a number of bytes, with K, M, G or T for powers of 1024
  -e, --maxbytes SIZE      the last one (128M)
  -f, --stepfactor F       each is F times the one before (2)
  -i, --stepbytes SIZE     each is so much more than the one before, instead of a factor

what
  -g, --ranks N[,N...]     ranks, one run for each number (2); under meshwise-run its -n says it
  --fabric NAME[,NAME]     shared_memory: ranks are processes (default, or what MESHWISE_FABRIC says);
                           thread: ranks are threads
  -d, --datatype TYPE,...  float double bfloat16 half int32 int64 uint8, or all (float)
  -o, --op OP,...          sum prod min max, or all (sum); of all_reduce, reduce_scatter and reduce
  -r, --root RANK          of broadcast, reduce, gather and scatter (0); all: each rank in turn
  --out-of-place, --in-place, --both
                           which forms (both). An operation that has only one is measured in that:
                           broadcast in place; all_to_all, all_to_all_v, send_recv, barrier out of place
  --buffers KIND[,KIND]    registered: memory that all ranks map, what tensors lie in (default);
                           foreign: memory from malloc, which other processes cannot reach; or both, as all
  --ragged                 all_to_all_v with blocks of 1/n to (2n-1)/n times the average; without it they are equal

how
  --algorithm NAME[,NAME]  auto (default: the library chooses), all, or names such as ring, direct, two_shot,
                           halving_doubling; what cannot do an operation is left out
  --lanes N                slices that go through the schedule one behind the other
  --reproducible           combine in the order of the ranks
  --no-bind                do not keep rank r on core r modulo the number of cores

timing
  -n, --iters N            single calls of each form of a point (default: what fits into --seconds, 20 to 2000)
  --seconds S              time for them (0.1)
  -w, --warmup_iters N     calls before, at least 3 (5)
  --batch N                calls timed together (default: 1; of calls shorter than 1 us as many as take 2 us)
  --cold                   input and output are taken out of all caches before each call; with --warm too: both
  --rewrite                each rank writes its input anew before each call: its lines are then in its own caches
  -c, --check N            checked calls after the timing, each with other data (1); 0: none

output
  --json FILE              everything measured, with the machine, the compiler and the options
  --html FILE              one page with curves and a table, which needs nothing else
  --peers FILE             draw what others took into the page: a JSON file of ./run bench --peers, or of --json
  -h, --help               this text

columns
  size      bytes of the larger buffer of a rank, as in nccl-tests: the whole output of all_gather, the whole input of
            reduce_scatter and scatter
  count     elements that the call is told: of one rank's vector, or of one block
  time      microseconds of a call among calls back to back (the median of 5 to 50 series); with --cold or --rewrite
            the mean of single calls
  algbw     size / time, in 1e9 bytes per second
  busbw     algbw times a factor that makes operations and numbers of ranks n comparable, as what each rank has to pass
            on: all_reduce 2(n-1)/n; reduce_scatter, all_gather, all_to_all, gather, scatter (n-1)/n;
            broadcast, reduce, send_recv 1
  #wrong    elements that differ from the expected value, which is computed anew from what every rank has put in: exact
            for integers, copies, min and max; else within n roundings of the sum of magnitudes. N/A: not checked
  min, median, p99
            microseconds of single calls. All ranks meet before each at a barrier that is not the library's, each takes
            its own time, and the slowest one's counts: a call ends when the last rank has its result
  %mem      how near the median is to the memory's limit. The bytes that have to be read plus those that have to be
            written (n ranks, size S: all_reduce 2nS; reduce_scatter, reduce, all_gather (n+1)S; broadcast nS;
            gather, scatter 2S; all_to_all, send_recv 2nS; in place all_gather nS, gather and scatter 2S(n-1)/n) per
            second, beside what a copy of as many bytes moves, read plus written, by one thread on each core, measured
            just before the point: with memcpy or around the caches, whichever is faster. Small calls wait more than
            they move; data in caches may come to more than 100
  placement near, far or busy: a cache line goes from core to core and back in less than 200 ns, in less than 2 us, or
            other work is on the cores; "near>far": it changed meanwhile. Compare only what was placed alike

Lines that are not rows begin with #. The exit code is 0; 1 if any value is wrong or a rank fails; 2 for options that
cannot be followed.

examples
  meshwise-bench                                                 all_reduce of 8 B to 128 MiB on two processes
  meshwise-bench all -b 1K -e 64M -f 4 -g 2,4 --html page.html   everything, drawn
  meshwise-bench all_reduce --algorithm all -b 32K -e 1M --in-place
  meshwise-bench all_gather broadcast --fabric thread,shared_memory --buffers all -d bfloat16
  meshwise-run -n 4 meshwise-bench reduce_scatter -o max -d int32 -c 10
)text";
