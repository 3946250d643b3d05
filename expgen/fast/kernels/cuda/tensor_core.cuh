// GPU instructions that the kernels use, one function each. All lanes of a warp must call collective ones together. A "pair"
// is two bfloat16 numbers in 32 bits, the first in the low half. tests/fast/kernels/emulated_cuda.h has the same functions
// for the CPU, to test the kernels without a GPU.

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

#define DEVICE __device__ __forceinline__

DEVICE u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }

// Loads four 8×8 matrices of bfloat16 from shared memory. Lane l passes the address of row l % 8 of matrix l / 8 (16 bytes)
// and receives, from each matrix, the pair at row l / 4, columns 2 (l % 4) and the next.
DEVICE void load_matrices(u32 (&out)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The same, transposed: lane l receives the pair at column l / 4, rows 2 (l % 4) and the next.
DEVICE void load_transposed(u32 (&out)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// sum[16, 8] += a[16, 16] b[16, 8]. With r = lane / 4 and q = lane % 4 a lane holds, each a pair along the last axis:
// a[r, 2q], a[r + 8, 2q], a[r, 2q + 8], a[r + 8, 2q + 8]; along k b[2q, r], b[2q + 8, r]; and the four numbers
// sum[r, 2q], sum[r, 2q + 1], sum[r + 8, 2q], sum[r + 8, 2q + 1].
DEVICE void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies sixteen bytes from global to shared memory, asynchronously until `finish_copies`.
DEVICE void copy_async(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

// Waits for this thread's own copies; __syncthreads makes them visible to the others.
DEVICE void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

DEVICE u32 relu_pair(u32 pair) {
    u32 out;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(pair), "r"(0u));
    return out;
}

DEVICE u32 add_pairs(u32 a, u32 b) {  // a · 1 + b
    u32 out;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return out;
}

DEVICE u32 round_to_pair(float first, float second) {
    u32 out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
    return out;
}

DEVICE float first_of(u32 pair) { return __uint_as_float(pair << 16); }
DEVICE float second_of(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

// Byte n of the result is byte `selector` nibble n of `a` (0 to 3) or `b` (4 to 7); +8 fills it with that byte's top bit.
DEVICE u32 select_bytes(u32 a, u32 b, u32 selector) {
    u32 out;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(selector));
    return out;
}

template <typename Value>
DEVICE Value from_lane(Value value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
