// Gradients of weights: matrix products over pixels, summed in registers over all images of a thread block.

// Adds the sums of warps that processed different pixels, through shared memory, one group after another so that the order
// is deterministic. `group`: the warp's group of GROUPS; `slot`: which sums it has. Returns true on the warps with the totals.
template <int COUNT, int GROUPS>
DEVICE bool add_groups(float (&sum)[COUNT], int group, int slot) {
    float* const totals = reinterpret_cast<float*>(shared) + slot * COUNT * 32 + lane_index();
    __syncthreads();
    for (int turn = 0; turn < GROUPS; turn++) {
        if (turn == group) {
#pragma unroll
            for (int n = 0; n < COUNT; n++) {
                if (turn > 0) sum[n] += totals[n * 32];
                if (turn + 1 < GROUPS) totals[n * 32] = sum[n];
            }
        }
        __syncthreads();
    }
    return group == GROUPS - 1;
}

// Adds two tiles of gradients [16 pixels, 8 channels] over their pixels; a lane gets a part of its column of each.
DEVICE void add_columns(float& first, float& second, const u32 (&d)[4]) {
    first += (first_of(d[0]) + second_of(d[0])) + (first_of(d[1]) + second_of(d[1]));
    second += (first_of(d[2]) + second_of(d[2])) + (first_of(d[3]) + second_of(d[3]));
}

DEVICE float sum_of_four_lanes(float value) {
    value += from_lane(value, lane_index() ^ 1);
    return value + from_lane(value, lane_index() ^ 2);
}

// Writes dL/dweight [CO, 3, 3, CI] and then dL/dbias [CO] of a convolution, summed over the block's images, to `partial`.
// Each warp has one 16×16 tile of channels; if there are more warps than tiles, they divide the pixels. With POOLED, `dy` is
// the gradient of the pooled map. Of the TOTAL channels in dy, CO are used, from 8 · `first_chunk` on.
template <int SIDE, int CI, int CO, int TOTAL, bool RELU, bool POOLED>
DEVICE void weight_gradient(const uint4* x, const uint4* dy, const uint2* winner, int first_chunk, float* partial,
                            int num_images) {
    typedef Layout<SIDE, CI, 1> Input;
    typedef Layout<SIDE, CO, 0> Output;
    constexpr int IMAGES = SIDE == 8 ? 4 : 1, BLOCKS = CI / 16 * (CO / 16), GROUPS = WARPS / BLOCKS;
    constexpr int STRIPS = SIDE == 32 ? 2 : 1, ROWS = SIDE == 8 ? 8 : SIDE * STRIPS / GROUPS;
    uint4* const inputs = shared;
    uint4* const outputs = shared + IMAGES * Input::SIZE;
    const int lane = lane_index(), block = warp_index() % BLOCKS, group = warp_index() / BLOCKS;
    const int ci = block % (CI / 16), co = block / (CI / 16);  // index of the sixteen channels
    const int image = SIDE == 8 ? group * 2 : 0, row = SIDE == 8 ? 0 : group / STRIPS * ROWS;
    const int column = SIDE == 8 ? 0 : group % STRIPS * 16;
    float sum[9 * 2 * 4 + 2];  // [3 rows, 3 columns, 2 tiles, 4], then the bias
#pragma unroll
    for (int n = 0; n < 74; n++) sum[n] = 0.0f;
    for (int n = 0; n < IMAGES; n++) clear_border<Input>(inputs + n * Input::SIZE);
#pragma unroll 1
    for (int base = blockIdx.x * IMAGES; base < num_images; base += gridDim.x * IMAGES) {
        for (int n = 0; n < IMAGES; n++) {
            uint4* const input = inputs + n * Input::SIZE;
            uint4* const output = outputs + n * Output::SIZE;
            if (base + n < num_images) {
                copy_image<Input>(input, x + u64(base + n) * SIDE * SIDE * Input::CHUNKS);
                if (POOLED) {
                    const u64 offset = u64(base + n) * (SIDE * SIDE / 4) * (TOTAL / 8) + first_chunk;
                    unpool_image<Output, TOTAL / 8>(output, dy + offset, winner + offset);
                } else {
                    copy_image<Output, TOTAL / 8>(output, dy + u64(base + n) * SIDE * SIDE * (TOTAL / 8) + first_chunk);
                }
            } else {  // no image: contributes 0
                for (int task = threadIdx.x; task < Input::SIZE; task += THREADS) input[task] = make_uint4(0, 0, 0, 0);
                for (int task = threadIdx.x; task < Output::SIZE; task += THREADS) output[task] = make_uint4(0, 0, 0, 0);
            }
        }
        finish_copies();
        __syncthreads();
        constexpr int INPUT_SECOND = SIDE == 8 ? Input::SIZE / Input::CHUNKS : 8;
        constexpr int OUTPUT_SECOND = SIDE == 8 ? Output::SIZE / Output::CHUNKS : 8;
        const uint4* views[3];
#pragma unroll
        for (int kx = 0; kx < 3; kx++) {
            const int pixel = Input::pixel(row, column + kx) + lane % 8 + lane / 16 * INPUT_SECOND;
            views[kx] = inputs + image * Input::SIZE + Input::chunk(pixel, 2 * ci + lane / 8 % 2);
        }
        const int pixel = Output::pixel(row, column) + lane % 8 + lane / 8 % 2 * OUTPUT_SECOND;
        const uint4* const gradients = outputs + image * Output::SIZE + Output::chunk(pixel, 2 * co + lane / 16);
        u32 d[3][4];  // gradients of the last three rows of pixels
#pragma unroll
        for (int i = 0; i < ROWS + 2; i++) {  // input row i, border included, contributes to output rows i − 2 to i
            if (i < ROWS) {
                load_transposed(d[i % 3], gradients + i * Output::WIDTH * Output::CHUNKS);
                if (ci == 0) add_columns(sum[72], sum[73], d[i % 3]);
            }
#pragma unroll
            for (int kx = 0; kx < 3; kx++) {
                u32 a[4];
                load_transposed(a, views[kx] + i * Input::WIDTH * Input::CHUNKS);
                if (RELU)
#pragma unroll
                    for (int e = 0; e < 4; e++) a[e] = relu_pair(a[e]);
#pragma unroll
                for (int ky = 0; ky < 3; ky++)
                    if (i - ky >= 0 && i - ky < ROWS)
#pragma unroll
                        for (int n = 0; n < 2; n++) {
                            float(&tile)[4] = *reinterpret_cast<float(*)[4]>(sum + ((ky * 3 + kx) * 2 + n) * 4);
                            multiply(tile, a, d[(i - ky) % 3][2 * n], d[(i - ky) % 3][2 * n + 1]);
                        }
            }
        }
        __syncthreads();
    }
    sum[72] = sum_of_four_lanes(sum[72]), sum[73] = sum_of_four_lanes(sum[73]);
    if (!add_groups<74, GROUPS>(sum, group, block)) return;
    const int first_output = 8 * first_chunk + 16 * co;
#pragma unroll
    for (int n = 0; n < 72; n++) {
        const int input = 16 * ci + lane / 4 + n % 4 / 2 * 8, output = first_output + n / 4 % 2 * 8 + lane % 4 * 2 + n % 2;
        partial[(output * 9 + n / 8) * CI + input] = sum[n];
    }
    if (ci == 0 && lane % 4 == 0)
        for (int n = 0; n < 2; n++) partial[TOTAL * 9 * CI + first_output + 8 * n + lane / 4] = sum[72 + n];
}

// Both convolutions of a residual block (blockIdx.y), one after the other in `partial`. The second one's input is never
// negative, so the ReLU for the first one's input does not change it.
template <int SIDE, int CHANNELS>
DEVICE void block_weight_gradient(const uint4* x, const uint4* d_hidden, const uint4* hidden, const uint4* dy, float* partial,
                                  int stride, int num_images) {
    const bool is_second = blockIdx.y == 1;
    float* const own = partial + u64(blockIdx.x) * stride + (is_second ? 9 * CHANNELS * CHANNELS + CHANNELS : 0);
    weight_gradient<SIDE, CHANNELS, CHANNELS, CHANNELS, true, false>(is_second ? hidden : x, is_second ? dy : d_hidden,
                                                                     nullptr, 0, own, num_images);
}
