// Images in shared memory, with a border of zeros for convolutions.
//
// A pixel has CHANNELS / 8 chunks of eight channels. Chunk c of pixel p is stored at c ^ swizzle(p), so that chunk c of
// eight neighbouring pixels is in different banks. Widths in memory are multiples of eight, so that the swizzle is the same
// for all rows.

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr float LOWEST = -3.402823466e38f;

extern __shared__ uint4 shared[];

DEVICE int lane_index() { return threadIdx.x % 32; }
DEVICE int warp_index() { return threadIdx.x / 32; }

// The layout of a image in shared memory. BORDER: pixels of zeros on each side, 0 or 1. SPLIT: a row has its even
// columns first and then the odd ones, counted with the border, for windows with stride 2.
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
DEVICE void clear_border(uint4* image) {
    constexpr int ROW = Map::WIDTH * Map::CHUNKS, TASKS = 2 * ROW + Map::SIDE * 2 * Map::CHUNKS;
    for (int task = threadIdx.x; task < TASKS; task += THREADS) {
        int offset;
        if (task < 2 * ROW) {
            offset = task < ROW ? task : (Map::ROWS - 2) * ROW + task;
        } else {
            const int index = task - 2 * ROW, row = index / (2 * Map::CHUNKS) + 1, side = index / Map::CHUNKS % 2;
            offset = Map::pixel(row, side * (Map::SIDE + 1)) * Map::CHUNKS + index % Map::CHUNKS;
        }
        image[offset] = make_uint4(0, 0, 0, 0);
    }
}

// Copies a map from global memory asynchronously. TOTAL: chunks per pixel there, of which Map::CHUNKS are copied.
template <typename Map, int TOTAL = Map::CHUNKS>
DEVICE void copy_image(uint4* image, const uint4* from) {
    for (int task = threadIdx.x; task < Map::SIDE * Map::SIDE * Map::CHUNKS; task += THREADS) {
        const int at = task / Map::CHUNKS, index = task % Map::CHUNKS;
        const int pixel = Map::pixel(at / Map::SIDE + Map::BORDER, at % Map::SIDE + Map::BORDER);
        copy_async(image + Map::chunk(pixel, index), from + at * TOTAL + index);
    }
}

// Returns the eight gradients, with zeros where the winner is not `position`.
DEVICE uint4 gradient_at(const uint4& gradient, const uint2& winner, u32 position) {
    const u32 differs_low = winner.x ^ position * 0x01010101u, differs_high = winner.y ^ position * 0x01010101u;
    const u32 low = ~(differs_low + 0x7f7f7f7fu), high = ~(differs_high + 0x7f7f7f7fu);  // top bit of a byte: equal
    return make_uint4(gradient.x & select_bytes(low, 0, 0x9988), gradient.y & select_bytes(low, 0, 0xbbaa),
                      gradient.z & select_bytes(high, 0, 0x9988), gradient.w & select_bytes(high, 0, 0xbbaa));
}

DEVICE uint4 add_chunks(const uint4& a, const uint4& b) {
    return make_uint4(add_pairs(a.x, b.x), add_pairs(a.y, b.y), add_pairs(a.z, b.z), add_pairs(a.w, b.w));
}

// Computes the gradient of a max-pool's input from the output's gradient and the winners (channels as in copy_image).
template <typename Map, int TOTAL = Map::CHUNKS>
DEVICE void unpool_image(uint4* image, const uint4* gradient, const uint2* winner) {
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
        image[Map::chunk(Map::pixel(r, c), index)] = gradient_at(d, w, 4);
        image[Map::chunk(Map::pixel(r, c + 1), index)] =
            add_chunks(gradient_at(d, w, 5), gradient_at(d_right, w_right, 3));
        image[Map::chunk(Map::pixel(r + 1, c), index)] =
            add_chunks(gradient_at(d, w, 7), gradient_at(d_below, w_below, 1));
        image[Map::chunk(Map::pixel(r + 1, c + 1), index)] =
            add_chunks(add_chunks(gradient_at(d, w, 8), gradient_at(d_right, w_right, 6)),
                       add_chunks(gradient_at(d_below, w_below, 2), gradient_at(d_both, w_both, 0)));
    }
}
