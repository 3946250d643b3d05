// The first convolution reads an image of bytes (or floats from 0 to 255). In shared memory a pixel is four numbers, the
// last 0, so that four neighbours in a row, the last with weight 0, are the 16 inputs of one matrix product. An operand must
// be aligned to 16 bytes, which is two pixels, so a second copy is shifted by one pixel for odd columns.
constexpr int IMAGE_SIDE = 64, IMAGE_WIDTH = 68, IMAGE_ROW = IMAGE_WIDTH / 2;  // in chunks of two pixels

DEVICE void read_four_pixels(uint2 (&pixels)[4], const u8* from) {
    const u32* const words = reinterpret_cast<const u32*>(from);
    const u32 word[3] = {__ldg(words), __ldg(words + 1), __ldg(words + 2)};
    u32 value[12];  // floats: 2²³ + byte is exact, with the byte in the lowest bits
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

// Reads ROWS rows of an image from `first_row` on, after LEFT columns of zeros; pixels outside the image are 0.
template <int ROWS, int LEFT, typename Number>
DEVICE void read_image(const Number* image, int first_row) {
    constexpr int FOURS = IMAGE_SIDE / 4, TASKS = ROWS * (FOURS + 1);
    uint2* const plain = reinterpret_cast<uint2*>(shared);
    uint2* const shifted = plain + ROWS * IMAGE_WIDTH;
    for (int task = threadIdx.x; task < TASKS; task += THREADS) {
        const int row = task / (FOURS + 1), four = task % (FOURS + 1);
        uint2* const to = plain + row * IMAGE_WIDTH;
        uint2* const to_shifted = shifted + row * IMAGE_WIDTH;
        if (four == FOURS) {  // the columns beside the image
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

// Convolution and max-pool from the image [64, 64, 3] to `y` [32, 32, 16]; a warp computes four pooled rows.
template <typename Number>
DEVICE void stem(const Number* images, const uint4* weight, const float* bias, uint2* y, u32* winner) {
    constexpr int HALF = IMAGE_SIDE / 2, POOLED = HALF / WARPS, ROWS = IMAGE_SIDE + 2;
    const u64 image = blockIdx.x;
    read_image<ROWS, 1>(images + image * IMAGE_SIDE * IMAGE_SIDE * 3, -1);
    __syncthreads();
    const int lane = lane_index(), first = warp_index() * POOLED;
    const bool is_top = first == 0;
    u32 b[3][2][2];
    load_weights<2, 16>(b, weight, 0, 0, 1, 0);
    Pooling<POOLED> pooling;
    // Left operand: eight even columns, then eight odd ones, which are read from the shifted copy.
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
            const u64 pixel = (image * HALF + first + u) * HALF + 8 * strip + lane / 4;
            store_pooled(pooling.best[u], pooling.winner[u], 1.0f / 255, bias + lane % 4 * 4, y, winner,
                         pixel * 4 + lane % 4);
        }
    }
}

// Writes the gradients of weight [16, 3, 3, 3] and bias [16], summed over some bands of BAND pooled rows, to `partial`. For
// each of the nine window positions, the gradients whose winner it is are multiplied with the input pixels at that position.
template <int BAND, typename Number>
DEVICE void stem_weight_gradient(const Number* images, const uint4* dy, const uint2* winner, float* partial, int num_images) {
    constexpr int HALF = IMAGE_SIDE / 2, ROWS = 2 * BAND + 3, BANDS = HALF / BAND, CHUNKS = BAND * HALF * 2;
    typedef Layout<HALF, 16, 0> Map;
    uint4* const gradients = shared + 2 * ROWS * IMAGE_ROW;
    uint4* const winners = gradients + CHUNKS;  // for each gradient 16 bits, of which the winner's is set
    const int lane = lane_index();
    float sum[26];  // [3 rows, 2 tiles, 4], then the bias
#pragma unroll
    for (int n = 0; n < 26; n++) sum[n] = 0.0f;
#pragma unroll 1
    for (int unit = blockIdx.x; unit < num_images * BANDS; unit += gridDim.x) {
        const u64 image = unit / BANDS;
        const int first = unit % BANDS * BAND;
        const u64 offset = (image * HALF + first) * HALF * 2;
        for (int task = threadIdx.x; task < CHUNKS; task += THREADS) {
            const int to = Map::chunk(task / 2, task % 2);
            copy_async(gradients + to, dy + offset + task);
            const uint2 won = __ldg(winner + offset + task);
            u32 bits[4];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const u32 two = (n < 2 ? won.x : won.y) >> 16 * (n % 2);
                bits[n] = 1u << (two & 15) | 0x10000u << (two >> 8 & 15);
            }
            winners[to] = make_uint4(bits[0], bits[1], bits[2], bits[3]);
        }
        read_image<ROWS, 2>(images + image * IMAGE_SIDE * IMAGE_SIDE * 3, 2 * first - 2);
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
