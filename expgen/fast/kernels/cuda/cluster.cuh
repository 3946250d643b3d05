// A cluster: programs that run at the same time, on neighbouring multiprocessors, and write to each other's shared memory
// (compute capability 9.0). tests/fast/kernels/emulated_cluster.h has the same functions for the CPU.

DEVICE uint4* shared_memory() {
    extern __shared__ uint4 memory[];
    return memory;
}

// Waits for all threads of the cluster.
DEVICE void meet_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// A mailbox counts the bytes that other programs send to this one. Each round begins by expecting a number of bytes and
// ends when so many have come; they may come before they are expected, but not before the round before has ended.
DEVICE void open_mailbox(u64* mailbox) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;"
                 ::"r"(shared_address(mailbox)) : "memory");
}

DEVICE void expect_bytes(u64* mailbox, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared_address(mailbox)), "r"(bytes) : "memory");
}

// Waits for the end of a round; `parity`: 0 for the first, 1 for the second, 0 for the third and so on.
DEVICE void wait_for_bytes(u64* mailbox, int parity) {
    u32 has_ended;
    do {
        asm volatile("{\n\t.reg .pred ended;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, ended;\n\t}"
                     : "=r"(has_ended) : "r"(shared_address(mailbox)), "r"(parity) : "memory");
    } while (!has_ended);
}

// Sixteen bytes to the shared memory of a program of the cluster, at the place that `to` and `mailbox` have in ours.
DEVICE void send(int program, void* to, uint4 value, u64* mailbox) {
    asm volatile("{\n\t.reg .u32 place, counter;\n\t"
                 "mapa.shared::cluster.u32 place, %0, %2;\n\t"
                 "mapa.shared::cluster.u32 counter, %1, %2;\n\t"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [place], {%3, %4, %5, %6}, [counter];\n\t}"
                 ::"r"(shared_address(to)), "r"(shared_address(mailbox)), "r"(program),
                   "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
}
