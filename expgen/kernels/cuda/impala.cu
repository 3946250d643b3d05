// The convolutions of an IMPALA encoder over 64×64 pictures, forward and backward, on tensor cores.
//
// Maps are stored picture × row × column × channel in bfloat16. A program of eight warps takes one picture, or a few
// small ones, into shared memory with a border of zeros. A warp computes rows of 16 pixels, all channels: the nine
// shifted views of a row are the left operands of matrix products, read straight from shared memory, and a view of one
// row serves the three output rows it belongs to. Both convolutions of a residual block happen in one launch.
//
// Pixel p of a picture lies at p · CHANNELS / 8 chunks of eight channels. Chunk c of it is stored at c ^ swizzle(p), so
// that eight neighbouring pixels' chunks c lie in different banks. Widths in memory are multiples of eight, so that
// the swizzle is the same for all rows.
//
// Weights come ordered as the lanes read them (impala_weights.py), output channels so that a lane's are neighbours.

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr float LOWEST = -3.402823466e38f;

extern __shared__ uint4 shared[];

DEVICE int lane_index() { return threadIdx.x % 32; }
DEVICE int warp_index() { return threadIdx.x / 32; }

// Where a picture's pixels lie in shared memory. BORDER: pixels of zeros on each side, 0 or 1. SPLIT: even columns of
// a row first and then odd ones, counted with the border, for windows that move by two.
template <int SIDE_, int CHANNELS_, int BORDER_, bool SPLIT_ = false>
struct Layout {
    static constexpr int SIDE = SIDE_, CHANNELS = CHANNELS_, BORDER = BORDER_, CHUNKS = CHANNELS / 8;
    static constexpr bool SPLIT = SPLIT_;
    static constexpr int ROWS = SIDE + 2 * BORDER, WIDTH = (SIDE + 2 * BORDER + 7) / 8 * 8;
    static constexpr int SIZE = ROWS * WIDTH * CHUNKS;  // chunks of 16 bytes

    static DEVICE int pixel(int row, int column) {  // border included in both
        return row * WIDTH + (SPLIT ? column % 2 * (WIDTH / 2) + column / 2 : column);
    }
    static DEVICE int chunk(int pixel, int index) {
        return pixel * CHUNKS + (index ^ (CHUNKS == 2 ? pixel >> 2 & 1 : pixel >> 1 & 3));
    }
};

template <typename Map>
DEVICE void clear_border(uint4* picture) {
    constexpr int ROW = Map::WIDTH * Map::CHUNKS, TASKS = 2 * ROW + Map::SIDE * 2 * Map::CHUNKS;
    for (int task = threadIdx.x; task < TASKS; task += THREADS) {
        int place;
        if (task < 2 * ROW) {
            place = task < ROW ? task : (Map::ROWS - 2) * ROW + task;
        } else {
            const int index = task - 2 * ROW, row = index / (2 * Map::CHUNKS) + 1, side = index / Map::CHUNKS % 2;
            place = Map::pixel(row, side * (Map::SIDE + 1)) * Map::CHUNKS + index % Map::CHUNKS;
        }
        picture[place] = make_uint4(0, 0, 0, 0);
    }
}

// A map of global memory, in the background. TOTAL: chunks per pixel there; `from` may be the first of some of them.
template <typename Map, int TOTAL = Map::CHUNKS>
DEVICE void copy_picture(uint4* picture, const uint4* from) {
    for (int task = threadIdx.x; task < Map::SIDE * Map::SIDE * Map::CHUNKS; task += THREADS) {
        const int at = task / Map::CHUNKS, index = task % Map::CHUNKS;
        const int pixel = Map::pixel(at / Map::SIDE + Map::BORDER, at % Map::SIDE + Map::BORDER);
        copy_async(picture + Map::chunk(pixel, index), from + at * TOTAL + index);
    }
}

// What of eight gradients goes to the window position `position`.
DEVICE uint4 gradient_at(const uint4& gradient, const uint2& winner, u32 position) {
    const u32 differs_low = winner.x ^ position * 0x01010101u, differs_high = winner.y ^ position * 0x01010101u;
    const u32 low = ~(differs_low + 0x7f7f7f7fu), high = ~(differs_high + 0x7f7f7f7fu);  // top bit of a byte: it is here
    return make_uint4(gradient.x & select_bytes(low, 0, 0x9988), gradient.y & select_bytes(low, 0, 0xbbaa),
                      gradient.z & select_bytes(high, 0, 0x9988), gradient.w & select_bytes(high, 0, 0xbbaa));
}

DEVICE uint4 add_chunks(const uint4& a, const uint4& b) {
    return make_uint4(add_pairs(a.x, b.x), add_pairs(a.y, b.y), add_pairs(a.z, b.z), add_pairs(a.w, b.w));
}

// The gradient of a max-pool's input, from those of its output and the winning positions (channels as in copy_picture).
template <typename Map, int TOTAL = Map::CHUNKS>
DEVICE void unpool_picture(uint4* picture, const uint4* gradient, const uint2* winner) {
    constexpr int HALF = Map::SIDE / 2;
    const uint4 zero = make_uint4(0, 0, 0, 0);
    for (int task = threadIdx.x; task < HALF * HALF * Map::CHUNKS; task += THREADS) {
        const int index = task % Map::CHUNKS, row = task / Map::CHUNKS / HALF, column = task / Map::CHUNKS % HALF;
        const bool has_right = column + 1 < HALF, has_below = row + 1 < HALF;
        const int here = (row * HALF + column) * TOTAL + index, right = here + TOTAL, below = here + HALF * TOTAL;
        const uint4 d = gradient[here];
        const uint2 w = winner[here];
        const uint4 d_right = has_right ? gradient[right] : zero, d_below = has_below ? gradient[below] : zero;
        const uint2 w_right = has_right ? winner[right] : w, w_below = has_below ? winner[below] : w;
        const bool has_both = has_right && has_below;
        const uint4 d_both = has_both ? gradient[below + TOTAL] : zero;
        const uint2 w_both = has_both ? winner[below + TOTAL] : w;
        const int r = 2 * row + Map::BORDER, c = 2 * column + Map::BORDER;
        picture[Map::chunk(Map::pixel(r, c), index)] = gradient_at(d, w, 4);
        picture[Map::chunk(Map::pixel(r, c + 1), index)] =
            add_chunks(gradient_at(d, w, 5), gradient_at(d_right, w_right, 3));
        picture[Map::chunk(Map::pixel(r + 1, c), index)] =
            add_chunks(gradient_at(d, w, 7), gradient_at(d_below, w_below, 1));
        picture[Map::chunk(Map::pixel(r + 1, c + 1), index)] =
            add_chunks(add_chunks(gradient_at(d, w, 8), gradient_at(d_right, w_right, 6)),
                       add_chunks(gradient_at(d_below, w_below, 2), gradient_at(d_both, w_both, 0)));
    }
}

// A convolution's weights for `CO` outputs: `[3 columns, CI / 16, 3 rows, CO / 16, 32 lanes]` of 16 bytes.
template <int TILES, int CO>
DEVICE void load_weights(u32 (&b)[3][TILES][2], const uint4* weight, int column, int k, int k_count, int first_sixteen) {
#pragma unroll
    for (int ky = 0; ky < 3; ky++)
#pragma unroll
        for (int n = 0; n < TILES / 2; n++) {
            const int place = ((column * k_count + k) * 3 + ky) * (CO / 16) + first_sixteen + n;
            const uint4 four = __ldg(weight + place * 32 + lane_index());
            b[ky][2 * n][0] = four.x, b[ky][2 * n][1] = four.y, b[ky][2 * n + 1][0] = four.z, b[ky][2 * n + 1][1] = four.w;
        }
}

// Sums of ROWS output rows of 16 pixels: eight that begin at `pixel`, whose upper left neighbour that is (border
// included), and eight SECOND pixels further on. In a split layout the first eight are even output columns.
template <typename Map, int CO, int ROWS, int TILES, int SECOND, bool RELU>
DEVICE void convolve(float (&sum)[ROWS][TILES][4], const uint4* picture, const uint4* weight, int row, int column,
                     int first_sixteen = 0, bool skip_first_row = false) {
    constexpr int K = Map::CHANNELS / 16;
    const int lane = lane_index(), second = lane / 8 % 2;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[r][n][e] = 0.0f;
#pragma unroll
    for (int kx = 0; kx < 3; kx++) {
        int pixel;
        if (Map::SPLIT)  // a pixel's neighbours among the even or odd columns are two columns away
            pixel = Map::pixel(row, column + second + kx) + lane % 8;
        else
            pixel = Map::pixel(row, column + kx) + lane % 8 + second * SECOND;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const uint4* view = picture + Map::chunk(pixel, 2 * k + lane / 16);
            u32 b[3][TILES][2];
            load_weights<TILES, CO>(b, weight, kx, k, K, first_sixteen);
#pragma unroll
            for (int i = 0; i < ROWS + 2; i++) {
                if (i == 0 && skip_first_row) continue;
                u32 a[4];
                load_matrices(a, view + i * Map::WIDTH * Map::CHUNKS);
                if (RELU)
#pragma unroll
                    for (int e = 0; e < 4; e++) a[e] = relu_pair(a[e]);
#pragma unroll
                for (int ky = 0; ky < 3; ky++)
                    if (i - ky >= 0 && i - ky < ROWS)
#pragma unroll
                        for (int n = 0; n < TILES; n++) multiply(sum[i - ky][n], a, b[ky][n][0], b[ky][n][1]);
            }
        }
    }
}

// Neighbouring channels of one pixel as one lane has them: CHANNELS / 4 of them, in pairs.
template <int CHANNELS>
struct Part;
template <>
struct Part<16> {
    typedef uint2 Vector;
    static DEVICE void open(u32 (&pairs)[2], const Vector& v) { pairs[0] = v.x, pairs[1] = v.y; }
    static DEVICE Vector close(const u32 (&pairs)[2]) { return make_uint2(pairs[0], pairs[1]); }
};
template <>
struct Part<32> {
    typedef uint4 Vector;
    static DEVICE void open(u32 (&pairs)[4], const Vector& v) {
        pairs[0] = v.x, pairs[1] = v.y, pairs[2] = v.z, pairs[3] = v.w;
    }
    static DEVICE Vector close(const u32 (&pairs)[4]) { return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]); }
};

// How many pictures of a side a program takes, and which rows of 16 pixels each of its warps has.
template <int SIDE, int CHANNELS>
struct Share {
    static constexpr int PICTURES = SIDE == 8 ? 4 : 1;
    static constexpr int ROWS = CHANNELS == 16 ? 8 : 2;
    static constexpr int STRIPS = SIDE == 32 ? 2 : 1;  // of 16 columns; at SIDE 8 a strip is a row of two pictures

    static DEVICE int picture() { return SIDE == 8 ? warp_index() / 4 * 2 : 0; }
    static DEVICE int row() { return (SIDE == 8 ? warp_index() % 4 : warp_index() / STRIPS) * ROWS; }
    static DEVICE int column() { return warp_index() % STRIPS * 16; }
};

// Calls `with(picture of the program, row, column, pairs of sums)` for each pixel that this lane has a part of.
template <int SIDE, int CHANNELS, typename With>
DEVICE void for_each_pixel(float (&sum)[Share<SIDE, CHANNELS>::ROWS][CHANNELS / 8][4], With with) {
    typedef Share<SIDE, CHANNELS> Mine;
#pragma unroll
    for (int r = 0; r < Mine::ROWS; r++)
#pragma unroll
        for (int group = 0; group < 2; group++) {
            const int column = Mine::column() + lane_index() / 4 + (SIDE == 8 ? 0 : 8 * group);
            float values[CHANNELS / 4];
#pragma unroll
            for (int n = 0; n < CHANNELS / 8; n++)
                values[2 * n] = sum[r][n][2 * group], values[2 * n + 1] = sum[r][n][2 * group + 1];
            with(Mine::picture() + (SIDE == 8 ? group : 0), Mine::row() + r, column, values);
        }
}

// y = x + conv₂(h), h = relu(conv₁(relu(x)));   backward, from dy:  dh = convᵀ₂(dy) · [h > 0],  dx = dy + convᵀ₁(dh) · [x > 0].
// Both are out = in + B(middle), middle = A(in): forward A adds a bias and cuts at zero, B adds a bias; backward they
// mask. `middle` may be null: then it is not stored.
template <int SIDE, int CHANNELS, bool BACKWARD>
DEVICE void residual_block(const uint4* in, const uint4* weight_a, const uint4* weight_b, const float* bias_a,
                           const float* bias_b, const uint4* mask_a, const uint4* mask_b, uint4* middle, uint4* out,
                           int num_pictures) {
    typedef Layout<SIDE, CHANNELS, 1> Map;
    typedef Share<SIDE, CHANNELS> Mine;
    typedef typename Part<CHANNELS>::Vector Vector;
    constexpr int OWN = CHANNELS / 4, PAIRS = CHANNELS / 8, PER_PICTURE = SIDE * SIDE * Map::CHUNKS;
    constexpr int SECOND = SIDE == 8 ? Map::ROWS * Map::WIDTH : 8;
    uint4* const first = shared;
    uint4* const hidden = shared + Mine::PICTURES * Map::SIZE;
    const int base = blockIdx.x * Mine::PICTURES, part = lane_index() % 4;
    for (int n = 0; n < Mine::PICTURES; n++) {
        if (base + n < num_pictures) copy_picture<Map>(first + n * Map::SIZE, in + u64(base + n) * PER_PICTURE);
        clear_border<Map>(first + n * Map::SIZE);
        clear_border<Map>(hidden + n * Map::SIZE);
    }
    finish_copies();
    __syncthreads();

    // Of the lane's part of a pixel: where it lies in shared memory, and in the map, counted in Vectors.
    const auto shared_part = [&](uint4* pictures, int picture, int row, int column) -> Vector* {
        const int pixel = Map::pixel(row + 1, column + 1), index = CHANNELS == 16 ? part / 2 : part;
        uint4* chunk = pictures + picture * Map::SIZE + Map::chunk(pixel, index);
        return reinterpret_cast<Vector*>(chunk) + (CHANNELS == 16 ? part % 2 : 0);
    };
    const auto map_part = [&](int picture, int row, int column) -> u64 {
        return (u64(base + picture) * SIDE * SIDE + row * SIDE + column) * 4 + part;
    };
    const auto mask_values = [&](float(&values)[OWN], const uint4* mask, u64 place) {
        u32 pairs[PAIRS];
        Part<CHANNELS>::open(pairs, __ldg(reinterpret_cast<const Vector*>(mask) + place));
#pragma unroll
        for (int n = 0; n < PAIRS; n++) {
            if (!(first_of(pairs[n]) > 0)) values[2 * n] = 0.0f;
            if (!(second_of(pairs[n]) > 0)) values[2 * n + 1] = 0.0f;
        }
    };
    const auto add_bias = [&](float(&values)[OWN], const float* bias) {
#pragma unroll
        for (int n = 0; n < OWN; n++) values[n] += __ldg(bias + part * OWN + n);
    };
    const auto rounded = [&](const float(&values)[OWN]) -> Vector {
        u32 pairs[PAIRS];
#pragma unroll
        for (int n = 0; n < PAIRS; n++) pairs[n] = round_to_pair(values[2 * n], values[2 * n + 1]);
        return Part<CHANNELS>::close(pairs);
    };

    float sum[Mine::ROWS][PAIRS][4];
    convolve<Map, CHANNELS, Mine::ROWS, PAIRS, SECOND, !BACKWARD>(sum, first + Mine::picture() * Map::SIZE, weight_a,
                                                                 Mine::row(), Mine::column());
    for_each_pixel<SIDE, CHANNELS>(sum, [&](int picture, int row, int column, float(&values)[OWN]) {
        const bool is_there = base + picture < num_pictures;
        if (BACKWARD) {
            if (is_there) mask_values(values, mask_a, map_part(picture, row, column));
        } else {
            add_bias(values, bias_a);
#pragma unroll
            for (int n = 0; n < OWN; n++) values[n] = values[n] < 0 ? 0.0f : values[n];
        }
        const Vector result = rounded(values);
        *shared_part(hidden, picture, row, column) = result;
        if (middle && is_there) reinterpret_cast<Vector*>(middle)[map_part(picture, row, column)] = result;
    });
    __syncthreads();
    convolve<Map, CHANNELS, Mine::ROWS, PAIRS, SECOND, false>(sum, hidden + Mine::picture() * Map::SIZE, weight_b,
                                                             Mine::row(), Mine::column());
    for_each_pixel<SIDE, CHANNELS>(sum, [&](int picture, int row, int column, float(&values)[OWN]) {
        if (base + picture >= num_pictures) return;
        if (BACKWARD)
            mask_values(values, mask_b, map_part(picture, row, column));
        else
            add_bias(values, bias_b);
        u32 pairs[PAIRS];
        Part<CHANNELS>::open(pairs, *shared_part(first, picture, row, column));
#pragma unroll
        for (int n = 0; n < PAIRS; n++) values[2 * n] += first_of(pairs[n]), values[2 * n + 1] += second_of(pairs[n]);
        reinterpret_cast<Vector*>(out)[map_part(picture, row, column)] = rounded(values);
    });
}

// Maxima over 3×3 windows that move by two, of sums [2 POOLED + 1 rows, 8 even and 8 odd columns], sixteen channels.
// The window of pooled column j has columns 2j − 1 (odd, of the lanes before or of the strip before), 2j and 2j + 1.
template <int POOLED>
struct Pooling {
    float best[POOLED][4];  // of the pooled row, for the lane's four channels
    u32 winner[POOLED];     // a byte each: 3 · window row + window column
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

    // `is_top`: the first row of sums is above the picture.
    DEVICE void pool(const float (&sum)[2 * POOLED + 1][2][4], bool is_top) {
        const int lane = lane_index();
#pragma unroll
        for (int u = 0; u < POOLED; u++) {
            float odd[4], even[4];
            u32 odd_row = 0, even_row = 0;  // which of three won, a byte each
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
                u32 row = left_row >> 8 * c & 255, column = 0;  // of equal ones the first in reading order wins
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
DEVICE void store_pooled(const float (&best)[4], u32 won, float scale, const float* bias, uint2* y, u32* winner, u64 place) {
    const u32 low = round_to_pair(best[0] * scale + __ldg(bias), best[1] * scale + __ldg(bias + 1));
    const u32 high = round_to_pair(best[2] * scale + __ldg(bias + 2), best[3] * scale + __ldg(bias + 3));
    y[place] = make_uint2(low, high);
    if (winner) winner[place] = won;
}

// A convolution and its max-pool: `x` [SIDE, SIDE, CI] to `y` [SIDE / 2, SIDE / 2, CO]. A warp has two pooled rows.
template <int SIDE, int CI, int CO>
DEVICE void pooled_convolution(const uint4* x, const uint4* weight, const float* bias, uint2* y, u32* winner,
                               int num_pictures) {
    typedef Layout<SIDE, CI, 1, true> Map;
    constexpr int PICTURES = 32 / SIDE, HALF = SIDE / 2, PER_PICTURE = WARPS / PICTURES, POOLED = HALF / PER_PICTURE;
    const int base = blockIdx.x * PICTURES;
    for (int n = 0; n < PICTURES; n++) {
        if (base + n < num_pictures) copy_picture<Map>(shared + n * Map::SIZE, x + u64(base + n) * SIDE * SIDE * Map::CHUNKS);
        clear_border<Map>(shared + n * Map::SIZE);
    }
    finish_copies();
    __syncthreads();
    const int picture = warp_index() / PER_PICTURE, first = warp_index() % PER_PICTURE * POOLED;
    if (base + picture >= num_pictures) return;
    const int j = lane_index() / 4, part = lane_index() % 4;
#pragma unroll 1
    for (int sixteen = 0; sixteen < CO / 16; sixteen++) {
        Pooling<POOLED> pooling;
#pragma unroll 1
        for (int strip = 0; strip < SIDE / 16; strip++) {
            float sum[2 * POOLED + 1][2][4];
            convolve<Map, CO, 2 * POOLED + 1, 2, 0, false>(sum, shared + picture * Map::SIZE, weight, 2 * first - 1,
                                                           16 * strip, sixteen, first == 0);
            pooling.pool(sum, first == 0);
#pragma unroll
            for (int u = 0; u < POOLED; u++) {
                const u64 pixel = (u64(base + picture) * HALF + first + u) * HALF + 8 * strip + j;
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
    constexpr int PER_PICTURE = SIDE * SIDE / 4 * Map::CHUNKS;
    const u64 picture = blockIdx.x;
    clear_border<Map>(shared);
    unpool_picture<Map>(shared, dy + picture * PER_PICTURE, winner + picture * PER_PICTURE);
    __syncthreads();
    float sum[Mine::ROWS][CI / 8][4];
    convolve<Map, CI, Mine::ROWS, CI / 8, 8, false>(sum, shared, weight, Mine::row(), Mine::column());
    for_each_pixel<SIDE, CI>(sum, [&](int, int row, int column, float(&values)[CI / 4]) {
        u32 pairs[CI / 8];
#pragma unroll
        for (int n = 0; n < CI / 8; n++) pairs[n] = round_to_pair(values[2 * n], values[2 * n + 1]);
        const u64 place = (picture * SIDE * SIDE + row * SIDE + column) * 4 + lane_index() % 4;
        reinterpret_cast<Vector*>(dx)[place] = Part<CI>::close(pairs);
    });
}

// Adds up what warps that summed different pixels have, in shared memory, one after another so that the order is
// always the same. `group` of GROUPS; `slot`: which sums the warp has. True for the warps that have the totals then.
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

// Sums of two tiles of gradients [16 pixels, 8 channels] over their pixels; a lane has those of its column of each.
DEVICE void add_columns(float& first, float& second, const u32 (&d)[4]) {
    first += (first_of(d[0]) + second_of(d[0])) + (first_of(d[1]) + second_of(d[1]));
    second += (first_of(d[2]) + second_of(d[2])) + (first_of(d[3]) + second_of(d[3]));
}

DEVICE float sum_of_four_lanes(float value) {
    value += from_lane(value, lane_index() ^ 1);
    return value + from_lane(value, lane_index() ^ 2);
}

// dL/dweight [CO, 3, 3, CI] and then dL/dbias [CO] of a convolution, summed over the program's pictures, to `partial`.
// Warps share the 16×16 blocks of channels and, beyond that, the pixels. With POOLED, `dy` is the gradient of the
// pooled map. Of TOTAL channels in dy the program has the CO that begin at 8 · `first_chunk`.
template <int SIDE, int CI, int CO, int TOTAL, bool RELU, bool POOLED>
DEVICE void weight_gradient(const uint4* x, const uint4* dy, const uint2* winner, int first_chunk, float* partial,
                            int num_pictures) {
    typedef Layout<SIDE, CI, 1> Input;
    typedef Layout<SIDE, CO, 0> Output;
    constexpr int PICTURES = SIDE == 8 ? 4 : 1, BLOCKS = CI / 16 * (CO / 16), GROUPS = WARPS / BLOCKS;
    constexpr int STRIPS = SIDE == 32 ? 2 : 1, ROWS = SIDE == 8 ? 8 : SIDE * STRIPS / GROUPS;
    uint4* const inputs = shared;
    uint4* const outputs = shared + PICTURES * Input::SIZE;
    const int lane = lane_index(), block = warp_index() % BLOCKS, group = warp_index() / BLOCKS;
    const int ci = block % (CI / 16), co = block / (CI / 16);  // which sixteen
    const int picture = SIDE == 8 ? group * 2 : 0, row = SIDE == 8 ? 0 : group / STRIPS * ROWS;
    const int column = SIDE == 8 ? 0 : group % STRIPS * 16;
    float sum[9 * 2 * 4 + 2];  // [3 rows, 3 columns, 2 tiles, 4], and the bias's
#pragma unroll
    for (int n = 0; n < 74; n++) sum[n] = 0.0f;
    for (int n = 0; n < PICTURES; n++) clear_border<Input>(inputs + n * Input::SIZE);
#pragma unroll 1
    for (int base = blockIdx.x * PICTURES; base < num_pictures; base += gridDim.x * PICTURES) {
        for (int n = 0; n < PICTURES; n++) {
            uint4* const input = inputs + n * Input::SIZE;
            uint4* const output = outputs + n * Output::SIZE;
            if (base + n < num_pictures) {
                copy_picture<Input>(input, x + u64(base + n) * SIDE * SIDE * Input::CHUNKS);
                if (POOLED) {
                    const u64 place = u64(base + n) * (SIDE * SIDE / 4) * (TOTAL / 8) + first_chunk;
                    unpool_picture<Output, TOTAL / 8>(output, dy + place, winner + place);
                } else {
                    copy_picture<Output, TOTAL / 8>(output, dy + u64(base + n) * SIDE * SIDE * (TOTAL / 8) + first_chunk);
                }
            } else {  // nothing to learn from
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
            views[kx] = inputs + picture * Input::SIZE + Input::chunk(pixel, 2 * ci + lane / 8 % 2);
        }
        const int pixel = Output::pixel(row, column) + lane % 8 + lane / 8 % 2 * OUTPUT_SECOND;
        const uint4* const gradients = outputs + picture * Output::SIZE + Output::chunk(pixel, 2 * co + lane / 16);
        u32 d[3][4];  // gradients of the last three rows of pixels
#pragma unroll
        for (int i = 0; i < ROWS + 2; i++) {  // row i of the view, border included, is seen by rows i − 2 to i
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

// Both convolutions of a residual block, the first and the second, which lie so in `partial` too. What the second reads
// is never negative, so that the first one's ReLU does not change it.
template <int SIDE, int CHANNELS>
DEVICE void block_weight_gradient(const uint4* x, const uint4* d_hidden, const uint4* hidden, const uint4* dy, float* partial,
                                  int stride, int num_pictures) {
    const bool is_second = blockIdx.y == 1;
    float* const own = partial + u64(blockIdx.x) * stride + (is_second ? 9 * CHANNELS * CHANNELS + CHANNELS : 0);
    weight_gradient<SIDE, CHANNELS, CHANNELS, CHANNELS, true, false>(is_second ? hidden : x, is_second ? dy : d_hidden,
                                                                     nullptr, 0, own, num_pictures);
}

// The first convolution reads a picture of bytes (or floats on their scale). In shared memory a pixel is four numbers,
// the last 0, so that four neighbours in a row, the last of weight 0, are the 16 inputs of one matrix product. A
// product's operand must begin at 16 bytes, which is two pixels: a second copy is shifted by one pixel for odd columns.
constexpr int IMAGE_SIDE = 64, IMAGE_WIDTH = 68, IMAGE_ROW = IMAGE_WIDTH / 2;  // in chunks of two pixels

DEVICE void read_four_pixels(uint2 (&pixels)[4], const u8* from) {
    const u32* const words = reinterpret_cast<const u32*>(from);
    const u32 word[3] = {__ldg(words), __ldg(words + 1), __ldg(words + 2)};
    u32 value[12];  // floats: 2²³ + byte is exact and has the byte in its lowest bits
#pragma unroll
    for (int n = 0; n < 12; n++)
        value[n] = __float_as_uint(__uint_as_float(select_bytes(word[n / 4], 0x4b000000u, 0x7650 | n % 4)) - 8388608.0f);
#pragma unroll
    for (int n = 0; n < 4; n++)
        pixels[n] = make_uint2(select_bytes(value[3 * n], value[3 * n + 1], 0x7632), value[3 * n + 2] >> 16);
}

DEVICE void read_four_pixels(uint2 (&pixels)[4], const float* from) {
    const float4* const words = reinterpret_cast<const float4*>(from);
    const float4 a = __ldg(words), b = __ldg(words + 1), c = __ldg(words + 2);
    pixels[0] = make_uint2(round_to_pair(a.x, a.y), round_to_pair(a.z, 0.0f));
    pixels[1] = make_uint2(round_to_pair(a.w, b.x), round_to_pair(b.y, 0.0f));
    pixels[2] = make_uint2(round_to_pair(b.z, b.w), round_to_pair(c.x, 0.0f));
    pixels[3] = make_uint2(round_to_pair(c.y, c.z), round_to_pair(c.w, 0.0f));
}

// Rows `first_row` to first_row + ROWS − 1 of an image, LEFT columns of zeros before them; zeros outside the image.
template <int ROWS, int LEFT, typename Number>
DEVICE void read_image(const Number* image, int first_row) {
    constexpr int FOURS = IMAGE_SIDE / 4, TASKS = ROWS * (FOURS + 1);
    uint2* const plain = reinterpret_cast<uint2*>(shared);
    uint2* const shifted = plain + ROWS * IMAGE_WIDTH;
    for (int task = threadIdx.x; task < TASKS; task += THREADS) {
        const int row = task / (FOURS + 1), four = task % (FOURS + 1);
        uint2* const to = plain + row * IMAGE_WIDTH;
        uint2* const to_shifted = shifted + row * IMAGE_WIDTH;
        if (four == FOURS) {  // what lies beside the image
            for (int n = 0; n < IMAGE_WIDTH - IMAGE_SIDE; n++) to[n < LEFT ? n : n + IMAGE_SIDE] = make_uint2(0, 0);
            for (int n = 0; n < IMAGE_WIDTH - IMAGE_SIDE; n++) to_shifted[n < LEFT - 1 ? n : n + IMAGE_SIDE] = make_uint2(0, 0);
            continue;
        }
        uint2 pixels[4] = {make_uint2(0, 0), make_uint2(0, 0), make_uint2(0, 0), make_uint2(0, 0)};
        const int image_row = first_row + row;
        if (image_row >= 0 && image_row < IMAGE_SIDE) read_four_pixels(pixels, image + (image_row * IMAGE_SIDE + 4 * four) * 3);
#pragma unroll
        for (int n = 0; n < 4; n++) to[4 * four + n + LEFT] = pixels[n], to_shifted[4 * four + n + LEFT - 1] = pixels[n];
    }
}

// Convolution and max-pool from the image [64, 64, 3] to `y` [32, 32, 16]; a warp has four pooled rows.
template <typename Number>
DEVICE void stem(const Number* images, const uint4* weight, const float* bias, uint2* y, u32* winner) {
    constexpr int HALF = IMAGE_SIDE / 2, POOLED = HALF / WARPS, ROWS = IMAGE_SIDE + 2;
    const u64 picture = blockIdx.x;
    read_image<ROWS, 1>(images + picture * IMAGE_SIDE * IMAGE_SIDE * 3, -1);
    __syncthreads();
    const int lane = lane_index(), first = warp_index() * POOLED;
    const bool is_top = first == 0;
    u32 b[3][2][2];
    load_weights<2, 16>(b, weight, 0, 0, 1, 0);
    Pooling<POOLED> pooling;
    // Left operand: eight even and then eight odd columns, which begin at pixels of the shifted copy.
    const uint4* const views = shared + (lane / 8 % 2) * ROWS * IMAGE_ROW + (2 * first - 1) * IMAGE_ROW + lane % 8 + lane / 16;
#pragma unroll 1
    for (int strip = 0; strip < IMAGE_SIDE / 16; strip++) {
        float sum[2 * POOLED + 1][2][4];
#pragma unroll
        for (int r = 0; r < 2 * POOLED + 1; r++)
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[r][n][e] = 0.0f;
#pragma unroll
        for (int i = 0; i < 2 * POOLED + 3; i++) {
            if (i == 0 && is_top) continue;
            u32 a[4];
            load_matrices(a, views + i * IMAGE_ROW + 8 * strip);
#pragma unroll
            for (int ky = 0; ky < 3; ky++)
                if (i - ky >= 0 && i - ky < 2 * POOLED + 1)
#pragma unroll
                    for (int n = 0; n < 2; n++) multiply(sum[i - ky][n], a, b[ky][n][0], b[ky][n][1]);
        }
        pooling.pool(sum, is_top);
#pragma unroll
        for (int u = 0; u < POOLED; u++) {
            const u64 pixel = (picture * HALF + first + u) * HALF + 8 * strip + lane / 4;
            store_pooled(pooling.best[u], pooling.winner[u], 1.0f / 255, bias + lane % 4 * 4, y, winner,
                         pixel * 4 + lane % 4);
        }
    }
}

// The gradients of its weight [16, 3, 3, 3] and bias [16], summed over some bands of BAND pooled rows, to `partial`.
// For each of the nine window positions, of the gradients that went there a product with the pixels seen from there.
template <int BAND, typename Number>
DEVICE void stem_weight_gradient(const Number* images, const uint4* dy, const uint2* winner, float* partial, int num_pictures) {
    constexpr int HALF = IMAGE_SIDE / 2, ROWS = 2 * BAND + 3, BANDS = HALF / BAND, CHUNKS = BAND * HALF * 2;
    typedef Layout<HALF, 16, 0> Map;
    uint4* const gradients = shared + 2 * ROWS * IMAGE_ROW;
    uint4* const winners = gradients + CHUNKS;  // a bit for the position, for each gradient sixteen
    const int lane = lane_index();
    float sum[26];  // [3 rows, 2 tiles, 4], and the bias's
#pragma unroll
    for (int n = 0; n < 26; n++) sum[n] = 0.0f;
#pragma unroll 1
    for (int unit = blockIdx.x; unit < num_pictures * BANDS; unit += gridDim.x) {
        const u64 picture = unit / BANDS;
        const int first = unit % BANDS * BAND;
        const u64 place = (picture * HALF + first) * HALF * 2;
        for (int task = threadIdx.x; task < CHUNKS; task += THREADS) {
            const int to = Map::chunk(task / 2, task % 2);
            copy_async(gradients + to, dy + place + task);
            const uint2 won = __ldg(winner + place + task);
            u32 bits[4];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const u32 two = (n < 2 ? won.x : won.y) >> 16 * (n % 2);
                bits[n] = 1u << (two & 15) | 0x10000u << (two >> 8 & 15);
            }
            winners[to] = make_uint4(bits[0], bits[1], bits[2], bits[3]);
        }
        read_image<ROWS, 2>(images + picture * IMAGE_SIDE * IMAGE_SIDE * 3, 2 * first - 2);
        finish_copies();
        __syncthreads();
#pragma unroll 1
        for (int task = warp_index(); task < BAND * 2; task += WARPS) {  // sixteen pooled pixels
            const int row = task / 2, column = task % 2 * 16;
            const int own = Map::chunk(row * HALF + column + lane % 8 + lane / 8 % 2 * 8, lane / 16);
            u32 d[4], won[4];
            load_transposed(d, gradients + own);
            load_transposed(won, winners + own);
            add_columns(sum[24], sum[25], d);
            const uint4* const corner = shared + 2 * row * IMAGE_ROW + column + lane % 8 + lane / 16 * 8 + lane / 8 % 2;
#pragma unroll
            for (int wx = 0; wx < 3; wx++) {
                u32 went[3][4];
#pragma unroll
                for (int wy = 0; wy < 3; wy++)
#pragma unroll
                    for (int e = 0; e < 4; e++) went[wy][e] = d[e] & ((won[e] >> (wy * 3 + wx) & 0x10001u) * 0xffffu);
#pragma unroll
                for (int i = 0; i < 5; i++) {
                    u32 a[4];
                    load_transposed(a, corner + i * IMAGE_ROW + (wx == 1 ? ROWS * IMAGE_ROW : wx / 2));
#pragma unroll
                    for (int wy = 0; wy < 3; wy++)
                        if (i - wy >= 0 && i - wy < 3)
#pragma unroll
                            for (int n = 0; n < 2; n++) {
                                float(&tile)[4] = *reinterpret_cast<float(*)[4]>(sum + ((i - wy) * 2 + n) * 4);
                                multiply(tile, a, went[wy][2 * n], went[wy][2 * n + 1]);
                            }
                }
            }
        }
        __syncthreads();
    }
    sum[24] = sum_of_four_lanes(sum[24]), sum[25] = sum_of_four_lanes(sum[25]);
    if (!add_groups<26, WARPS>(sum, warp_index(), 0)) return;
    float* const own = partial + u64(blockIdx.x) * (16 * 27 + 16);
#pragma unroll
    for (int n = 0; n < 24; n++) {
        const int input = lane / 4 + n % 4 / 2 * 8, output = n / 4 % 2 * 8 + lane % 4 * 2 + n % 2;
        const int kx = input / 4, colour = input % 4;
        if (kx < 3 && colour < 3) own[((output * 3 + n / 8) * 3 + kx) * 3 + colour] = sum[n] * (1.0f / 255);
    }
    if (lane % 4 == 0)
        for (int n = 0; n < 2; n++) own[16 * 27 + 8 * n + lane / 4] = sum[24 + n];
}

// PROGRAMS: at a time on a multiprocessor, which limits registers; benchmarks/kernel_speed.py measures other numbers.
#ifdef PROGRAMS_MEASURED
#define KERNEL(PROGRAMS) extern "C" __global__ void __launch_bounds__(THREADS, PROGRAMS_MEASURED)
#else
#define KERNEL(PROGRAMS) extern "C" __global__ void __launch_bounds__(THREADS, PROGRAMS)
#endif

#define RESIDUAL_BLOCK(SIDE, CHANNELS)                                                                                  \
    KERNEL(2) block_forward_##SIDE(const uint4* x, const uint4* weight_1, const float* bias_1, const uint4* weight_2,   \
                                   const float* bias_2, uint4* hidden, uint4* y, int num_pictures) {                    \
        residual_block<SIDE, CHANNELS, false>(x, weight_1, weight_2, bias_1, bias_2, nullptr, nullptr, hidden, y,       \
                                              num_pictures);                                                           \
    }                                                                                                                  \
    KERNEL(2) block_backward_##SIDE(const uint4* dy, const uint4* weight_1, const uint4* weight_2, const uint4* x,      \
                                    const uint4* hidden, uint4* d_hidden, uint4* dx, int num_pictures) {                \
        residual_block<SIDE, CHANNELS, true>(dy, weight_2, weight_1, nullptr, nullptr, hidden, x, d_hidden, dx,         \
                                             num_pictures);                                                            \
    }                                                                                                                  \
    KERNEL(2) block_weight_gradient_##SIDE(const uint4* x, const uint4* d_hidden, const uint4* hidden, const uint4* dy, \
                                           float* partial, int stride, int num_pictures) {                             \
        block_weight_gradient<SIDE, CHANNELS>(x, d_hidden, hidden, dy, partial, stride, num_pictures);                 \
    }

RESIDUAL_BLOCK(32, 16)
RESIDUAL_BLOCK(16, 32)
RESIDUAL_BLOCK(8, 32)

// CO_SHARE: channels of the output that one program sums weight gradients of; blockIdx.y is which of them.
#define POOLED_CONVOLUTION(SIDE, CI, CO, CO_SHARE)                                                                      \
    KERNEL(2) pooled_forward_##SIDE(const uint4* x, const uint4* weight, const float* bias, uint2* y, u32* winner,      \
                                    int num_pictures) {                                                                 \
        pooled_convolution<SIDE, CI, CO>(x, weight, bias, y, winner, num_pictures);                                    \
    }                                                                                                                  \
    KERNEL(2) pooled_backward_##SIDE(const uint4* dy, const uint2* winner, const uint4* weight, uint4* dx) {            \
        pooled_convolution_backward<SIDE, CI, CO>(dy, winner, weight, dx);                                             \
    }                                                                                                                  \
    KERNEL(2) pooled_weight_gradient_##SIDE(const uint4* x, const uint4* dy, const uint2* winner, float* partial,       \
                                            int stride, int num_pictures) {                                            \
        weight_gradient<SIDE, CI, CO_SHARE, CO, false, true>(x, dy, winner, blockIdx.y * (CO_SHARE / 8),               \
                                                             partial + u64(blockIdx.x) * stride, num_pictures);        \
    }

POOLED_CONVOLUTION(32, 16, 32, 16)
POOLED_CONVOLUTION(16, 32, 32, 16)

#define STEM(NAME, NUMBER)                                                                                              \
    KERNEL(2) stem_forward_##NAME(const NUMBER* images, const uint4* weight, const float* bias, uint2* y, u32* winner) { \
        stem(images, weight, bias, y, winner);                                                                         \
    }                                                                                                                  \
    KERNEL(2) stem_weight_gradient_##NAME(const NUMBER* images, const uint4* dy, const uint2* winner, float* partial,   \
                                          int num_pictures) {                                                          \
        stem_weight_gradient<16>(images, dy, winner, partial, num_pictures);                                           \
    }

STEM(bytes, u8)
STEM(floats, float)
