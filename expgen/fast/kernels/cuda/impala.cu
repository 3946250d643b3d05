// Kernels for the convolutions of an IMPALA encoder on 64×64 images, forward and backward, on tensor cores.
//
// Maps are stored as [image, row, column, channel] in bfloat16. A thread block of eight warps loads one image, or a few
// small ones, into shared memory. The files before this one, in the order of cuda_module.py, define the functions.

// BLOCKS: thread blocks per multiprocessor at a time, which limits registers.
#define KERNEL(BLOCKS) extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)

#define RESIDUAL_BLOCK(SIDE, CHANNELS)                                                                                  \
    KERNEL(2) block_forward_##SIDE(const uint4* x, const uint4* weight_1, const float* bias_1, const uint4* weight_2,   \
                                   const float* bias_2, uint4* hidden, uint4* y, int num_images) {                    \
        residual_block<SIDE, CHANNELS, false>(x, weight_1, weight_2, bias_1, bias_2, nullptr, nullptr, hidden, y,       \
                                              num_images);                                                           \
    }                                                                                                                  \
    KERNEL(2) block_backward_##SIDE(const uint4* dy, const uint4* weight_1, const uint4* weight_2, const uint4* x,      \
                                    const uint4* hidden, uint4* d_hidden, uint4* dx, int num_images) {                \
        residual_block<SIDE, CHANNELS, true>(dy, weight_2, weight_1, nullptr, nullptr, hidden, x, d_hidden, dx,         \
                                             num_images);                                                            \
    }                                                                                                                  \
    KERNEL(2) block_weight_gradient_##SIDE(const uint4* x, const uint4* d_hidden, const uint4* hidden, const uint4* dy, \
                                           float* partial, int stride, int num_images) {                             \
        block_weight_gradient<SIDE, CHANNELS>(x, d_hidden, hidden, dy, partial, stride, num_images);                 \
    }

RESIDUAL_BLOCK(32, 16)
RESIDUAL_BLOCK(16, 32)
RESIDUAL_BLOCK(8, 32)

// CO_SHARE: output channels whose weight gradients one thread block computes; blockIdx.y selects them.
#define POOLED_CONVOLUTION(SIDE, CI, CO, CO_SHARE)                                                                      \
    KERNEL(2) pooled_forward_##SIDE(const uint4* x, const uint4* weight, const float* bias, uint2* y, u32* winner,      \
                                    int num_images) {                                                                 \
        pooled_convolution<SIDE, CI, CO>(x, weight, bias, y, winner, num_images);                                    \
    }                                                                                                                  \
    KERNEL(2) pooled_backward_##SIDE(const uint4* dy, const uint2* winner, const uint4* weight, uint4* dx) {            \
        pooled_convolution_backward<SIDE, CI, CO>(dy, winner, weight, dx);                                             \
    }                                                                                                                  \
    KERNEL(2) pooled_weight_gradient_##SIDE(const uint4* x, const uint4* dy, const uint2* winner, float* partial,       \
                                            int stride, int num_images) {                                            \
        weight_gradient<SIDE, CI, CO_SHARE, CO, false, true>(x, dy, winner, blockIdx.y * (CO_SHARE / 8),               \
                                                             partial + u64(blockIdx.x) * stride, num_images);        \
    }

POOLED_CONVOLUTION(32, 16, 32, 16)
POOLED_CONVOLUTION(16, 32, 32, 16)

#define STEM(NAME, NUMBER)                                                                                              \
    KERNEL(2) stem_forward_##NAME(const NUMBER* images, const uint4* weight, const float* bias, uint2* y, u32* winner) { \
        stem(images, weight, bias, y, winner);                                                                         \
    }                                                                                                                  \
    KERNEL(2) stem_weight_gradient_##NAME(const NUMBER* images, const uint4* dy, const uint2* winner, float* partial,   \
                                          int num_images) {                                                          \
        stem_weight_gradient<16>(images, dy, winner, partial, num_images);                                           \
    }

STEM(bytes, u8)
STEM(floats, float)
