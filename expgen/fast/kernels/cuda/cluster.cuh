// Thread block clusters: blocks that run at the same time and can write to each other's shared memory (compute capability
// 9.0). tests/fast/kernels/emulated_cluster.h has the same functions for the CPU.

DEVICE uint4* shared_memory() {
    extern __shared__ uint4 memory[];
    return memory;
}

// Synchronizes all threads of the cluster.
DEVICE void sync_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// An mbarrier counts the bytes that other blocks send to this one. Each phase expects a number of bytes and ends when they
// have arrived; they may arrive before `expect_bytes` is called, but not before the previous phase has ended.
DEVICE void init_barrier(u64* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;"
                 ::"r"(shared_address(barrier)) : "memory");
}

DEVICE void expect_bytes(u64* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

// Waits for the end of a phase; `parity` is the number of the phase modulo 2.
DEVICE void wait_for_bytes(u64* barrier, int parity) {
    u32 has_ended;
    do {
        asm volatile("{\n\t.reg .pred ended;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, ended;\n\t}"
                     : "=r"(has_ended) : "r"(shared_address(barrier)), "r"(parity) : "memory");
    } while (!has_ended);
}

// Sends sixteen bytes to another block's shared memory; `to` and `barrier` are the addresses of the same variables here.
DEVICE void send(int block, void* to, uint4 value, u64* barrier) {
    asm volatile("{\n\t.reg .u32 place, counter;\n\t"
                 "mapa.shared::cluster.u32 place, %0, %2;\n\t"
                 "mapa.shared::cluster.u32 counter, %1, %2;\n\t"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [place], {%3, %4, %5, %6}, [counter];\n\t}"
                 ::"r"(shared_address(to)), "r"(shared_address(barrier)), "r"(block),
                   "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
}
