// A convolution and its max-pool in one pass, forward and backward. The winner, 0 to 8, of each window is stored.

// Maxima over 3×3 windows with stride 2, of sums [2 POOLED + 1 rows, 8 even and 8 odd columns] and sixteen channels. The
// window of pooled column j has columns 2j − 1 (odd, held by other lanes or carried from the previous strip), 2j and 2j + 1.
template <int POOLED>
struct Pooling {
    float best[POOLED][4];  // maxima of each pooled row, for the lane's four channels
    u32 winner[POOLED];     // a byte per channel: 3 · window row + window column
    float carried[POOLED][4];
    u32 carried_row[POOLED];

    DEVICE Pooling() {
#pragma unroll
        for (int u = 0; u < POOLED; u++) {
            carried_row[u] = 0;
#pragma unroll
            for (int c = 0; c < 4; c++) carried[u][c] = LOWEST;
        }
    }

    // `is_top`: whether the first row of sums is above the image.
    DEVICE void pool(const float (&sum)[2 * POOLED + 1][2][4], bool is_top) {
        const int lane = lane_index();
#pragma unroll
        for (int u = 0; u < POOLED; u++) {
            float odd[4], even[4];
            u32 odd_row = 0, even_row = 0;  // row of the maximum, a byte per channel
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int tile = c / 2, e = c % 2;
                const bool is_outside = u == 0 && is_top;
                even[c] = is_outside ? LOWEST : sum[2 * u][tile][e];
                odd[c] = is_outside ? LOWEST : sum[2 * u][tile][2 + e];
                u32 even_won = 0, odd_won = 0;
#pragma unroll
                for (int down = 1; down < 3; down++) {
                    const float even_next = sum[2 * u + down][tile][e], odd_next = sum[2 * u + down][tile][2 + e];
                    if (even_next > even[c]) even[c] = even_next, even_won = down;
                    if (odd_next > odd[c]) odd[c] = odd_next, odd_won = down;
                }
                even_row |= even_won << 8 * c, odd_row |= odd_won << 8 * c;
            }
            const u32 rotated_row = from_lane(odd_row, (lane + 28) % 32);
            const u32 left_row = lane < 4 ? carried_row[u] : rotated_row;
            carried_row[u] = rotated_row;
            winner[u] = 0;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float rotated = from_lane(odd[c], (lane + 28) % 32);
                float value = lane < 4 ? carried[u][c] : rotated;
                carried[u][c] = rotated;
                u32 row = left_row >> 8 * c & 255, column = 0;  // of equal maxima the first in row-major order wins
                const u32 in_even = even_row >> 8 * c & 255, in_odd = odd_row >> 8 * c & 255;
                if (even[c] > value || (even[c] == value && in_even < row)) value = even[c], row = in_even, column = 1;
                if (odd[c] > value || (odd[c] == value && in_odd < row)) value = odd[c], row = in_odd, column = 2;
                best[u][c] = value;
                winner[u] |= (3 * row + column) << 8 * c;
            }
        }
    }
};

// Stores four channels of a pooled pixel. `winner` may be null.
DEVICE void store_pooled(const float (&best)[4], u32 won, float scale, const float* bias, uint2* y, u32* winner, u64 offset) {
    const u32 low = round_to_pair(best[0] * scale + __ldg(bias), best[1] * scale + __ldg(bias + 1));
    const u32 high = round_to_pair(best[2] * scale + __ldg(bias + 2), best[3] * scale + __ldg(bias + 3));
    y[offset] = make_uint2(low, high);
    if (winner) winner[offset] = won;
}

// A convolution and its max-pool: `x` [SIDE, SIDE, CI] to `y` [SIDE / 2, SIDE / 2, CO]. A warp computes two pooled rows.
template <int SIDE, int CI, int CO>
DEVICE void pooled_convolution(const uint4* x, const uint4* weight, const float* bias, uint2* y, u32* winner,
                               int num_images) {
    typedef Layout<SIDE, CI, 1, true> Map;
    constexpr int IMAGES = 32 / SIDE, HALF = SIDE / 2, PER_IMAGE = WARPS / IMAGES, POOLED = HALF / PER_IMAGE;
    const int base = blockIdx.x * IMAGES;
    for (int n = 0; n < IMAGES; n++) {
        if (base + n < num_images) copy_image<Map>(shared + n * Map::SIZE, x + u64(base + n) * SIDE * SIDE * Map::CHUNKS);
        clear_border<Map>(shared + n * Map::SIZE);
    }
    finish_copies();
    __syncthreads();
    const int image = warp_index() / PER_IMAGE, first = warp_index() % PER_IMAGE * POOLED;
    if (base + image >= num_images) return;
    const int j = lane_index() / 4, part = lane_index() % 4;
#pragma unroll 1
    for (int sixteen = 0; sixteen < CO / 16; sixteen++) {
        Pooling<POOLED> pooling;
#pragma unroll 1
        for (int strip = 0; strip < SIDE / 16; strip++) {
            float sum[2 * POOLED + 1][2][4];
            convolve<Map, CO, 2 * POOLED + 1, 2, 0, false>(sum, shared + image * Map::SIZE, weight, 2 * first - 1,
                                                           16 * strip, sixteen, first == 0);
            pooling.pool(sum, first == 0);
#pragma unroll
            for (int u = 0; u < POOLED; u++) {
                const u64 pixel = (u64(base + image) * HALF + first + u) * HALF + 8 * strip + j;
                store_pooled(pooling.best[u], pooling.winner[u], 1.0f, bias + 16 * sixteen + 4 * part, y, winner,
                             pixel * (CO / 4) + 4 * sixteen + part);
            }
        }
    }
}

// The gradient of a pooled convolution's input: `dy` [SIDE / 2, SIDE / 2, CO] to `dx` [SIDE, SIDE, CI].
template <int SIDE, int CI, int CO>
DEVICE void pooled_convolution_backward(const uint4* dy, const uint2* winner, const uint4* weight, uint4* dx) {
    typedef Layout<SIDE, CO, 1> Map;
    typedef Share<SIDE, CI> Mine;
    typedef typename Part<CI>::Vector Vector;
    constexpr int PER_IMAGE = SIDE * SIDE / 4 * Map::CHUNKS;
    const u64 image = blockIdx.x;
    clear_border<Map>(shared);
    unpool_image<Map>(shared, dy + image * PER_IMAGE, winner + image * PER_IMAGE);
    __syncthreads();
    float sum[Mine::ROWS][CI / 8][4];
    convolve<Map, CI, Mine::ROWS, CI / 8, 8, false>(sum, shared, weight, Mine::row(), Mine::column());
    for_each_pixel<SIDE, CI>(sum, [&](int, int row, int column, float(&values)[CI / 4]) {
        u32 pairs[CI / 8];
#pragma unroll
        for (int n = 0; n < CI / 8; n++) pairs[n] = round_to_pair(values[2 * n], values[2 * n + 1]);
        const u64 offset = (image * SIDE * SIDE + row * SIDE + column) * 4 + lane_index() % 4;
        reinterpret_cast<Vector*>(dx)[offset] = Part<CI>::pack(pairs);
    });
}
