// A GRU over all steps in one launch, forward and backward (kernels/gru.py has the equations).
//
// A cluster of SIZE / 32 thread blocks processes eight environments. Each block owns 32 units. Its part of the three
// matrices stays in registers: each warp holds 16 units and a quarter of the inputs. A step multiplies the matrices with the
// inputs (the values of all units), which every block has in its shared memory, and adds the four quarters. Then each
// thread computes the gates of one unit of one environment and sends its result to all blocks. The inputs are double
// buffered: a block sends a step only after it has received the whole previous step, and by then all blocks have read the
// buffer that the step overwrites.

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int UNITS = 32;                // per thread block
constexpr int ENVS = 8;                  // per cluster, one per warp; the width of a matrix product
constexpr int GATES = 3;                 // matrices, for r, z and n
constexpr int QUARTERS = 4;              // parts of the inputs
constexpr int SUMS = 36;                 // stride between the environments' sums, chosen to avoid bank conflicts

DEVICE int lane_index() { return threadIdx.x % 32; }
DEVICE int warp_index() { return threadIdx.x / 32; }
DEVICE float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
DEVICE float hyperbolic_tangent(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// Shared memory of a block: two barriers, two copies of the inputs in bfloat16, and the partial sums of the quarters.
template <int SIZE, int VECTORS>
struct SharedBuffers {
    static constexpr int ROW = SIZE / 2 + 4;  // pairs per environment, padded to avoid bank conflicts
    static constexpr int COPY = VECTORS * ENVS * ROW;
    static constexpr int BYTES = VECTORS * ENVS * SIZE * 2;  // received per step if the cluster has all its environments
    u64* const barriers = reinterpret_cast<u64*>(shared_memory());
    u32* const inputs = reinterpret_cast<u32*>(shared_memory() + 1);
    float* const sums = reinterpret_cast<float*>(inputs + 2 * COPY);

    DEVICE u32* row(int copy, int vector, int env) { return inputs + copy * COPY + (vector * ENVS + env) * ROW; }

    // Clears the inputs, for missing environments, and starts the first phase of both barriers.
    DEVICE void prepare(int bytes) {
        for (int n = threadIdx.x; n < 2 * COPY; n += THREADS) inputs[n] = 0;
        if (threadIdx.x == 0)
            for (int n = 0; n < 2; n++) {
                init_barrier(barriers + n);
                expect_bytes(barriers + n, bytes);
            }
        __syncthreads();
    }

    // Waits for copy `round` % 2 of the inputs to arrive for the (`round` / 2)-th time.
    DEVICE void receive(int round, int bytes) {
        wait_for_bytes(barriers + round % 2, round / 2 % 2);
        if (threadIdx.x == 0) expect_bytes(barriers + round % 2, bytes);
    }

    // Sends the values of a warp's lanes, this block's units of one environment, to all blocks.
    DEVICE void broadcast(float value, int copy, int vector, int env) {
        const int lane = lane_index(), chunk = lane % 4;
        const u32 pair = round_to_pair(value, from_lane(value, lane ^ 1));  // in order only on even lanes
        const uint4 packed = {from_lane(pair, 8 * chunk), from_lane(pair, 8 * chunk + 2), from_lane(pair, 8 * chunk + 4),
                              from_lane(pair, 8 * chunk + 6)};
        u32* const to = row(copy, vector, env) + blockIdx.x * UNITS / 2 + 4 * chunk;
        for (int block = lane / 4; block < SIZE / UNITS; block += 8)
            send(block, to, packed, barriers + copy);
    }
};

// A warp's part of the matrices [3, SIZE, SIZE], from a quarter of the inputs to 16 of the block's units.
template <int SIZE>
struct Weights {
    static constexpr int TILES = SIZE / QUARTERS / 16;
    u32 parts[GATES][TILES][4];

    DEVICE explicit Weights(const u32* pairs) {
        const int lane = lane_index(), warp = warp_index();
        const int unit = blockIdx.x * UNITS + warp % 2 * 16 + lane / 4;
        for (int gate = 0; gate < GATES; gate++)
            for (int tile = 0; tile < TILES; tile++) {
                const u32* const corner =
                    pairs + (gate * SIZE + unit) * (SIZE / 2) + (warp / 2 * TILES + tile) * 8 + lane % 4;
                for (int n = 0; n < 4; n++) parts[gate][tile][n] = __ldg(corner + n % 2 * 8 * (SIZE / 2) + n / 2 * 4);
            }
    }

    // sums[gate][unit, environment] += matrix[gate] · inputs; the gates' input vectors are `stride` pairs apart.
    DEVICE void multiply_inputs(float (&sums)[GATES][4], const u32* inputs, int row, int stride) const {
        const int lane = lane_index();
        const u32* const mine = inputs + lane / 4 * row + warp_index() / 2 * TILES * 8 + lane % 4;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int gate = 0; gate < GATES; gate++) {
                const u32* const pair = mine + gate * stride + tile * 8;
                multiply(sums[gate], parts[gate][tile], pair[0], pair[4]);
            }
    }
};

// Stores a lane's four sums in shared memory, at [environment, unit] of this warp's quarter.
DEVICE void store_sums(float* to, const float (&sums)[4]) {
    const int lane = lane_index(), warp = warp_index();
    for (int n = 0; n < 4; n++)
        to[(warp / 2 * ENVS + lane % 4 * 2 + n % 2) * SUMS + warp % 2 * 16 + lane / 4 + n / 2 * 8] = sums[n];
}

// Returns the sum of the four quarters for this lane's unit and this warp's environment.
DEVICE float total(const float* sums) {
    float result = 0.0f;
    for (int quarter = 0; quarter < QUARTERS; quarter++)
        result += sums[(quarter * ENVS + warp_index()) * SUMS + lane_index()];
    return result;
}

// a [T, N, 3 SIZE], keep [T, N] (0 where an episode starts), start [N, SIZE], weight [3, new, old] and bias [3 SIZE] →
// out [T, N, SIZE] and gates [T, N, 4, SIZE]: r, z, n and b_n.
template <int SIZE>
DEVICE void gru_forward(const float* a, const float* keep, const float* start, const u32* weight, const float* bias,
                        float* out, float* gates, int num_steps, int num_envs) {
    SharedBuffers<SIZE, 1> buffers;
    const Weights<SIZE> weights(weight);
    const int first_env = blockIdx.y * ENVS, envs = min(ENVS, num_envs - first_env), bytes = buffers.BYTES / ENVS * envs;
    buffers.prepare(bytes);
    for (int n = threadIdx.x; n < envs * SIZE / 2; n += THREADS) {
        const int env = n / (SIZE / 2), pair = n % (SIZE / 2);
        const float* const memory = start + u64(first_env + env) * SIZE + 2 * pair;
        const float kept = keep[first_env + env];
        buffers.row(1, 0, env)[pair] = round_to_pair(memory[0] * kept, memory[1] * kept);
    }
    const bool has_env = warp_index() < envs;
    const int env = first_env + warp_index(), unit = blockIdx.x * UNITS + lane_index();
    float own = 0.0f, biases[GATES] = {}, next[GATES] = {};
    if (has_env) {
        own = start[u64(env) * SIZE + unit] * keep[env];
        for (int gate = 0; gate < GATES; gate++) {
            biases[gate] = bias[gate * SIZE + unit];
            next[gate] = __ldg(a + (u64(env) * GATES + gate) * SIZE + unit);
        }
    }
    sync_cluster();
    for (int t = 0; t < num_steps; t++) {
        const bool is_last = t + 1 == num_steps;
        float now[GATES], kept_next = 0.0f;
        for (int gate = 0; gate < GATES; gate++) now[gate] = next[gate];
        if (has_env && !is_last) {
            const u64 row = u64(t + 1) * num_envs + env;
            kept_next = __ldg(keep + row);
            for (int gate = 0; gate < GATES; gate++) next[gate] = __ldg(a + (row * GATES + gate) * SIZE + unit);
        }
        if (t > 0) buffers.receive(t - 1, bytes);
        float sums[GATES][4] = {};
        weights.multiply_inputs(sums, buffers.row((t + 1) % 2, 0, 0), buffers.ROW, 0);
        for (int gate = 0; gate < GATES; gate++) store_sums(buffers.sums + gate * QUARTERS * ENVS * SUMS, sums[gate]);
        __syncthreads();
        if (has_env) {
            float b[GATES];
            for (int gate = 0; gate < GATES; gate++)
                b[gate] = total(buffers.sums + gate * QUARTERS * ENVS * SUMS) + biases[gate];
            const float r = sigmoid(now[0] + b[0]), z = sigmoid(now[1] + b[1]);
            const float n = hyperbolic_tangent(now[2] + r * b[2]);
            const float memory = (1.0f - z) * n + z * own;
            own = memory * kept_next;
            if (!is_last) buffers.broadcast(own, t % 2, 0, warp_index());
            const u64 row = u64(t) * num_envs + env;
            out[row * SIZE + unit] = memory;
            float* const gate = gates + row * 4 * SIZE + unit;
            gate[0] = r, gate[SIZE] = z, gate[2 * SIZE] = n, gate[3 * SIZE] = b[2];
        }
    }
    sync_cluster();  // no block exits while another may still send to it
}

// d_out [T, N, SIZE], weight [3, old, new], and forward's inputs and outputs → d_gates [T, N, 4, SIZE]: dL/da_r, dL/da_z,
// dL/da_n and dL/db_n.
template <int SIZE>
DEVICE void gru_backward(const float* d_out, const float* keep, const float* start, const float* out, const u32* weight,
                         const float* gates, float* d_gates, int num_steps, int num_envs) {
    SharedBuffers<SIZE, GATES> buffers;
    const Weights<SIZE> weights(weight);
    const int first_env = blockIdx.y * ENVS, envs = min(ENVS, num_envs - first_env), bytes = buffers.BYTES / ENVS * envs;
    buffers.prepare(bytes);
    const bool has_env = warp_index() < envs;
    const int env = first_env + warp_index(), unit = blockIdx.x * UNITS + lane_index();
    enum { R, Z, N, B, OUT, OLD, KEPT, COUNT };
    float next[COUNT] = {};
    const auto fetch = [&](int t) {
        const u64 row = u64(t) * num_envs + env;
        for (int gate = 0; gate < 4; gate++) next[gate] = __ldg(gates + (row * 4 + gate) * SIZE + unit);
        next[OUT] = __ldg(d_out + row * SIZE + unit);
        next[OLD] = __ldg((t > 0 ? out + (row - num_envs) * SIZE : start + u64(env) * SIZE) + unit);
        next[KEPT] = __ldg(keep + row);
    };
    if (has_env) fetch(num_steps - 1);
    sync_cluster();
    float carry = 0.0f;  // dL/dh_t from later steps
    for (int t = num_steps - 1; t >= 0; t--) {
        const int round = num_steps - 1 - t;
        float now[COUNT];
        for (int n = 0; n < COUNT; n++) now[n] = next[n];
        if (has_env && t > 0) fetch(t - 1);
        const float d_h = now[OUT] + carry, r = now[R], z = now[Z], n = now[N];
        const float d_n = d_h * (1.0f - z) * (1.0f - n * n), d_b = d_n * r;
        const float d_r = d_n * now[B] * r * (1.0f - r), d_z = d_h * (now[OLD] * now[KEPT] - n) * z * (1.0f - z);
        if (has_env) {
            if (t > 0) {
                buffers.broadcast(d_r, round % 2, 0, warp_index());
                buffers.broadcast(d_z, round % 2, 1, warp_index());
                buffers.broadcast(d_b, round % 2, 2, warp_index());
            }
            float* const gate = d_gates + (u64(t) * num_envs + env) * 4 * SIZE + unit;
            gate[0] = d_r, gate[SIZE] = d_z, gate[2 * SIZE] = d_n, gate[3 * SIZE] = d_b;
        }
        if (t == 0) break;
        buffers.receive(round, bytes);
        float sums[GATES][4] = {};
        weights.multiply_inputs(sums, buffers.row(round % 2, 0, 0), buffers.ROW, ENVS * buffers.ROW);
        for (int m = 0; m < 4; m++) sums[0][m] += sums[1][m] + sums[2][m];
        store_sums(buffers.sums, sums[0]);
        __syncthreads();
        if (has_env) carry = (total(buffers.sums) + d_h * z) * now[KEPT];
    }
    sync_cluster();
}

#define KERNEL(CLUSTER_SIZE) extern "C" __global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1) __launch_bounds__(THREADS, 1)

// `gru_step` is forward for a single step, which sends nothing, so its blocks need no cluster.
#define GRU(SIZE)                                                                                                      \
    KERNEL(1) gru_step_##SIZE(const float* a, const float* keep, const float* start, const u32* weight,                 \
                              const float* bias, float* out, float* gates, int num_steps, int num_envs) {              \
        gru_forward<SIZE>(a, keep, start, weight, bias, out, gates, num_steps, num_envs);                              \
    }                                                                                                                  \
    KERNEL(SIZE / UNITS) gru_forward_##SIZE(const float* a, const float* keep, const float* start, const u32* weight,   \
                                            const float* bias, float* out, float* gates, int num_steps, int num_envs) { \
        gru_forward<SIZE>(a, keep, start, weight, bias, out, gates, num_steps, num_envs);                              \
    }                                                                                                                  \
    KERNEL(SIZE / UNITS) gru_backward_##SIZE(const float* d_out, const float* keep, const float* start, const float* out, \
                                             const u32* weight, const float* gates, float* d_gates, int num_steps,     \
                                             int num_envs) {                                                           \
        gru_backward<SIZE>(d_out, keep, start, out, weight, gates, d_gates, num_steps, num_envs);                      \
    }

GRU(64)
GRU(128)
GRU(256)
