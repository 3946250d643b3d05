// Both convolutions of a residual block in one pass, forward or backward.

// y = x + conv₂(h), h = relu(conv₁(relu(x)));   backward, from dy:  dh = convᵀ₂(dy) · [h > 0],  dx = dy + convᵀ₁(dh) · [x > 0].
// Both have the form out = in + B(middle), middle = A(in). Forward, A adds a bias and applies ReLU, and B adds a bias;
// backward, both apply a mask. `middle` is stored unless it is null.
template <int SIDE, int CHANNELS, bool BACKWARD>
DEVICE void residual_block(const uint4* in, const uint4* weight_a, const uint4* weight_b, const float* bias_a,
                           const float* bias_b, const uint4* mask_a, const uint4* mask_b, uint4* middle, uint4* out,
                           int num_images) {
    typedef Layout<SIDE, CHANNELS, 1> Map;
    typedef Share<SIDE, CHANNELS> Mine;
    typedef typename Part<CHANNELS>::Vector Vector;
    constexpr int OWN = CHANNELS / 4, PAIRS = CHANNELS / 8, PER_IMAGE = SIDE * SIDE * Map::CHUNKS;
    constexpr int SECOND = SIDE == 8 ? Map::ROWS * Map::WIDTH : 8;
    uint4* const first = shared;
    uint4* const hidden = shared + Mine::IMAGES * Map::SIZE;
    const int base = blockIdx.x * Mine::IMAGES, part = lane_index() % 4;
    for (int n = 0; n < Mine::IMAGES; n++) {
        if (base + n < num_images) copy_image<Map>(first + n * Map::SIZE, in + u64(base + n) * PER_IMAGE);
        clear_border<Map>(first + n * Map::SIZE);
        clear_border<Map>(hidden + n * Map::SIZE);
    }
    finish_copies();
    __syncthreads();

    // The address of the lane's channels of a pixel in shared memory, and their offset in the map, counted in Vectors.
    const auto shared_part = [&](uint4* images, int image, int row, int column) -> Vector* {
        const int pixel = Map::pixel(row + 1, column + 1), index = CHANNELS == 16 ? part / 2 : part;
        uint4* chunk = images + image * Map::SIZE + Map::chunk(pixel, index);
        return reinterpret_cast<Vector*>(chunk) + (CHANNELS == 16 ? part % 2 : 0);
    };
    const auto map_part = [&](int image, int row, int column) -> u64 {
        return (u64(base + image) * SIDE * SIDE + row * SIDE + column) * 4 + part;
    };
    const auto mask_values = [&](float(&values)[OWN], const uint4* mask, u64 offset) {
        u32 pairs[PAIRS];
        Part<CHANNELS>::unpack(pairs, __ldg(reinterpret_cast<const Vector*>(mask) + offset));
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
        return Part<CHANNELS>::pack(pairs);
    };

    float sum[Mine::ROWS][PAIRS][4];
    convolve<Map, CHANNELS, Mine::ROWS, PAIRS, SECOND, !BACKWARD>(sum, first + Mine::image() * Map::SIZE, weight_a,
                                                                 Mine::row(), Mine::column());
    for_each_pixel<SIDE, CHANNELS>(sum, [&](int image, int row, int column, float(&values)[OWN]) {
        const bool exists = base + image < num_images;
        if (BACKWARD) {
            if (exists) mask_values(values, mask_a, map_part(image, row, column));
        } else {
            add_bias(values, bias_a);
#pragma unroll
            for (int n = 0; n < OWN; n++) values[n] = values[n] < 0 ? 0.0f : values[n];
        }
        const Vector result = rounded(values);
        *shared_part(hidden, image, row, column) = result;
        if (middle && exists) reinterpret_cast<Vector*>(middle)[map_part(image, row, column)] = result;
    });
    __syncthreads();
    convolve<Map, CHANNELS, Mine::ROWS, PAIRS, SECOND, false>(sum, hidden + Mine::image() * Map::SIZE, weight_b,
                                                             Mine::row(), Mine::column());
    for_each_pixel<SIDE, CHANNELS>(sum, [&](int image, int row, int column, float(&values)[OWN]) {
        if (base + image >= num_images) return;
        if (BACKWARD)
            mask_values(values, mask_b, map_part(image, row, column));
        else
            add_bias(values, bias_b);
        u32 pairs[PAIRS];
        Part<CHANNELS>::unpack(pairs, *shared_part(first, image, row, column));
#pragma unroll
        for (int n = 0; n < PAIRS; n++) values[2 * n] += first_of(pairs[n]), values[2 * n + 1] += second_of(pairs[n]);
        reinterpret_cast<Vector*>(out)[map_part(image, row, column)] = rounded(values);
    });
}
