// A 3×3 convolution of a image in shared memory; each warp computes some of its rows.
//
// A warp computes all channels of rows of 16 pixels. The left operands of the matrix products are the nine shifted views
// of a row, read directly from shared memory; a view of one row is used for the three output rows that it contributes to.
// Weights are in the order in which lanes read them (impala_weights.py); a lane's output channels are neighbours.

// Loads weights of a convolution with CO outputs, stored as [3 columns, CI / 16, 3 rows, CO / 16, 32 lanes] of 16 bytes.
template <int TILES, int CO>
DEVICE void load_weights(u32 (&b)[3][TILES][2], const uint4* weight, int column, int k, int k_count, int first_sixteen) {
#pragma unroll
    for (int ky = 0; ky < 3; ky++)
#pragma unroll
        for (int n = 0; n < TILES / 2; n++) {
            const int offset = ((column * k_count + k) * 3 + ky) * (CO / 16) + first_sixteen + n;
            const uint4 four = __ldg(weight + offset * 32 + lane_index());
            b[ky][2 * n][0] = four.x, b[ky][2 * n][1] = four.y, b[ky][2 * n + 1][0] = four.z, b[ky][2 * n + 1][1] = four.w;
        }
}

// Computes ROWS output rows of 16 pixels, in two groups of eight. `row` and `column` are the upper left input pixel of the
// first group, border included; the second group is SECOND pixels further. In a split layout the first group is the even
// output columns, the second the odd ones.
template <typename Map, int CO, int ROWS, int TILES, int SECOND, bool RELU>
DEVICE void convolve(float (&sum)[ROWS][TILES][4], const uint4* image, const uint4* weight, int row, int column,
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
        if (Map::SPLIT)  // neighbours among the even (or odd) columns are two columns apart
            pixel = Map::pixel(row, column + second + kx) + lane % 8;
        else
            pixel = Map::pixel(row, column + kx) + lane % 8 + second * SECOND;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const uint4* view = image + Map::chunk(pixel, 2 * k + lane / 16);
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

// One lane's CHANNELS / 4 neighbouring channels of a pixel, as pairs.
template <int CHANNELS>
struct Part;
template <>
struct Part<16> {
    typedef uint2 Vector;
    static DEVICE void unpack(u32 (&pairs)[2], const Vector& v) { pairs[0] = v.x, pairs[1] = v.y; }
    static DEVICE Vector pack(const u32 (&pairs)[2]) { return make_uint2(pairs[0], pairs[1]); }
};
template <>
struct Part<32> {
    typedef uint4 Vector;
    static DEVICE void unpack(u32 (&pairs)[4], const Vector& v) {
        pairs[0] = v.x, pairs[1] = v.y, pairs[2] = v.z, pairs[3] = v.w;
    }
    static DEVICE Vector pack(const u32 (&pairs)[4]) { return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]); }
};

// The number of images per thread block, and the rows of 16 pixels of each warp.
template <int SIDE, int CHANNELS>
struct Share {
    static constexpr int IMAGES = SIDE == 8 ? 4 : 1;
    static constexpr int ROWS = CHANNELS == 16 ? 8 : 2;
    static constexpr int STRIPS = SIDE == 32 ? 2 : 1;  // of 16 columns; at SIDE 8 a strip is a row of two images

    static DEVICE int image() { return SIDE == 8 ? warp_index() / 4 * 2 : 0; }
    static DEVICE int row() { return (SIDE == 8 ? warp_index() % 4 : warp_index() / STRIPS) * ROWS; }
    static DEVICE int column() { return warp_index() % STRIPS * 16; }
};

// Calls `with(image of the block, row, column, sums)` for each pixel of which this lane holds channels.
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
            with(Mine::image() + (SIDE == 8 ? group : 0), Mine::row() + r, column, values);
        }
}
