// Runs the kernels of expgen/fast/kernels/cuda on the CPU: the functions of tensor_core.cuh, and thread blocks of 256
// threads as fibers, one block or one cluster of blocks at a time. A warp's collective operation, or a barrier, completes
// when the last thread arrives. Shared memory is filled with NaNs before a launch; writing past its end and misaligned
// addresses are errors.

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

#define DEVICE inline
#define __shared__
#define __global__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }

struct Index { int x, y; };
static Index threadIdx, blockIdx, gridDim;

namespace emulator {

constexpr int THREADS = 256, BLOCKS = 4;  // most blocks of a cluster
constexpr int STACK = 1 << 17, CAPACITY = 1 << 14;  // chunks of shared memory per block
struct SyncPoint { int arrived = 0, generation = 0; };
static ucontext_t scheduler, fibers[BLOCKS * THREADS];
static std::vector<char> stacks;
static bool is_done[BLOCKS * THREADS];
static SyncPoint cluster_sync, block_syncs[BLOCKS], warp_syncs[BLOCKS * THREADS / 32];
static const void* lane_pointers[BLOCKS * THREADS];
static u32 lane_values[BLOCKS * THREADS][12];
static int current, num_blocks;  // the running thread; blocks of its cluster
static bool is_reversed;  // whether threads run in reverse order

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "emulated kernel: %s\n", what);
    std::abort();
}

inline void pause() {
    swapcontext(&fibers[current], &scheduler);
}

// Waits for `count` threads; the last one runs `work`.
template <typename Work>
void sync(SyncPoint& point, int count, Work work) {
    const int generation = point.generation;
    if (++point.arrived == count) {
        work();
        point.arrived = 0;
        point.generation++;
    } else {
        while (point.generation == generation) pause();
    }
}

template <typename Work>
void sync_warp(Work work) { sync(warp_syncs[current / 32], 32, work); }

}  // namespace emulator

inline void __syncthreads() { emulator::sync(emulator::block_syncs[emulator::current / emulator::THREADS], emulator::THREADS, [] {}); }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline u32 __float_as_uint(float value) { u32 bits; std::memcpy(&bits, &value, 4); return bits; }
inline float __uint_as_float(u32 bits) { float value; std::memcpy(&value, &bits, 4); return value; }
template <typename Value>
Value __ldg(const Value* from) {
    if (reinterpret_cast<u64>(from) % alignof(Value)) emulator::fail("misaligned load");
    return *from;
}

inline float first_of(u32 pair) { return __uint_as_float(pair << 16); }
inline float second_of(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

inline u32 round_to_bfloat16(float value) {  // to nearest, ties to even
    const u32 bits = __float_as_uint(value);
    if (std::isnan(value)) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline u32 round_to_pair(float first, float second) {
    return round_to_bfloat16(first) | round_to_bfloat16(second) << 16;
}
inline u32 relu_pair(u32 pair) {
    const auto relu = [](float value) { return value < 0 ? 0.0f : value; };
    return round_to_pair(relu(first_of(pair)), relu(second_of(pair)));
}
inline u32 add_pairs(u32 a, u32 b) {
    return round_to_pair(first_of(a) + first_of(b), second_of(a) + second_of(b));
}
inline u32 select_bytes(u32 a, u32 b, u32 selector) {
    const u64 both = u64(b) << 32 | a;
    u32 out = 0;
    for (int n = 0; n < 4; n++) {
        const u32 nibble = selector >> 4 * n & 15, byte = both >> 8 * (nibble & 7) & 255;
        out |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * n;
    }
    return out;
}

extern uint4 shared[];

inline void load_rows(u32 (&out)[4], const void* row, bool is_transposed) {
    using namespace emulator;
    if (reinterpret_cast<u64>(row) % 16) fail("misaligned row of a matrix");
    if (row < shared || row >= shared + CAPACITY) fail("a row of a matrix outside shared memory");
    const int self = current;
    lane_pointers[self] = row;
    sync_warp([&] {
        const int base = self / 32 * 32;
        for (int lane = 0; lane < 32; lane++)
            for (int matrix = 0; matrix < 4; matrix++) {
                const auto at = [&](int r, int c) -> u32 {
                    return static_cast<const u16*>(lane_pointers[base + matrix * 8 + r])[c];
                };
                const int r = lane / 4, q = lane % 4;
                lane_values[base + lane][matrix] =
                    is_transposed ? at(2 * q, r) | at(2 * q + 1, r) << 16 : at(r, 2 * q) | at(r, 2 * q + 1) << 16;
            }
    });
    for (int matrix = 0; matrix < 4; matrix++) out[matrix] = lane_values[self][matrix];
}
inline void load_matrices(u32 (&out)[4], const void* row) { load_rows(out, row, false); }
inline void load_transposed(u32 (&out)[4], const void* row) { load_rows(out, row, true); }

inline void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    using namespace emulator;
    const int self = current;
    u32* mine = lane_values[self];
    for (int n = 0; n < 4; n++) mine[n] = a[n], mine[6 + n] = __float_as_uint(sum[n]);
    mine[4] = b0, mine[5] = b1;
    sync_warp([&] {
        const int base = self / 32 * 32;
        float left[16][16], right[8][16];  // right: [n][k]
        for (int lane = 0; lane < 32; lane++) {
            const u32* values = lane_values[base + lane];
            const int r = lane / 4, k = 2 * (lane % 4);
            for (int n = 0; n < 4; n++) {
                float* to = left[r + n % 2 * 8] + k + n / 2 * 8;
                to[0] = first_of(values[n]), to[1] = second_of(values[n]);
            }
            for (int n = 0; n < 2; n++)
                right[r][k + 8 * n] = first_of(values[4 + n]), right[r][k + 8 * n + 1] = second_of(values[4 + n]);
        }
        for (int lane = 0; lane < 32; lane++)
            for (int n = 0; n < 4; n++) {
                const float *row = left[lane / 4 + n / 2 * 8], *column = right[2 * (lane % 4) + n % 2];
                float total = 0;
                for (int k = 0; k < 16; k++) total += row[k] * column[k];
                u32& value = lane_values[base + lane][6 + n];
                value = __float_as_uint(__uint_as_float(value) + total);
            }
    });
    for (int n = 0; n < 4; n++) sum[n] = __uint_as_float(lane_values[self][6 + n]);
}

template <typename Value>
Value from_lane(Value value, int lane) {
    static_assert(sizeof(Value) == 4, "one word");
    const int self = emulator::current;
    std::memcpy(emulator::lane_values[self], &value, 4);
    emulator::sync_warp([] {});
    std::memcpy(&value, emulator::lane_values[self / 32 * 32 + lane], 4);
    emulator::sync_warp([] {});  // no lane overwrites a value before the others have read it
    return value;
}

inline void copy_async(void* to, const void* from) {
    if (reinterpret_cast<u64>(to) % 16 || reinterpret_cast<u64>(from) % 16) emulator::fail("misaligned copy");
    std::memcpy(to, from, 16);
}
inline void finish_copies() {}

namespace emulator {

typedef void (*Call)(void** arguments);
static Call kernel;
static void** kernel_arguments;

inline void fiber() {
    kernel(kernel_arguments);
    is_done[current] = true;
    while (true) pause();
}

// Runs `blocks` blocks of a row of the grid, from `column` on, at the same time.
inline void run_cluster(int blocks, int column, int row, int shared_bytes) {
    if (blocks > BLOCKS) fail("the cluster is too large");
    num_blocks = blocks;
    const int threads = blocks * THREADS;
    std::memset(shared, 0xff, blocks * CAPACITY * 16);
    stacks.resize(threads * STACK);
    for (int n = 0; n < threads; n++) {
        getcontext(&fibers[n]);
        fibers[n].uc_stack.ss_sp = stacks.data() + n * STACK;
        fibers[n].uc_stack.ss_size = STACK;
        makecontext(&fibers[n], fiber, 0);
        is_done[n] = false;
    }
    for (int left = threads; left > 0;) {
        left = 0;
        for (int turn = 0; turn < threads; turn++) {
            current = is_reversed ? threads - 1 - turn : turn;
            if (is_done[current]) continue;
            threadIdx = {current % THREADS, 0};
            blockIdx = {column + current / THREADS, row};
            swapcontext(&scheduler, &fibers[current]);
            left += !is_done[current];
        }
    }
    const u8* bytes = reinterpret_cast<const u8*>(shared);
    for (int block = 0; block < blocks; block++)
        for (int n = shared_bytes; n < CAPACITY * 16; n++)
            if (bytes[block * CAPACITY * 16 + n] != 0xff) fail("a write past the end of shared memory");
}

template <auto FUNCTION, typename... Arguments, std::size_t... INDEX>
void unpack(void (*)(Arguments...), void** arguments, std::index_sequence<INDEX...>) {
    FUNCTION(*static_cast<Arguments*>(arguments[INDEX])...);
}

template <auto FUNCTION, typename... Arguments>
Call call_of(void (*)(Arguments...)) {
    return [](void** arguments) {
        unpack<FUNCTION>(FUNCTION, arguments, std::make_index_sequence<sizeof...(Arguments)>());
    };
}

}  // namespace emulator

#define EMULATED(NAME) if (!std::strcmp(name, #NAME)) emulator::kernel = emulator::call_of<NAME>(NAME);

// Runs a kernel's grid, in clusters of `cluster` blocks of a row.
inline void run_grid(int x, int y, int cluster, int shared_bytes, void** arguments) {
    emulator::kernel_arguments = arguments;
    gridDim = {x, y};
    for (int row = 0; row < y; row++)
        for (int column = 0; column < x; column += cluster) {
            emulator::is_reversed = (column + row) % 2;  // results must not depend on the order
            emulator::run_cluster(cluster, column, row, shared_bytes);
        }
}
