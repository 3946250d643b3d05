// The functions of cluster.cuh for the CPU, for clusters of thread blocks that emulated_cuda.h runs.

inline uint4* shared_memory() { return shared + emulator::current / emulator::THREADS * emulator::CAPACITY; }

inline void sync_cluster() {
    emulator::sync(emulator::cluster_sync, emulator::num_blocks * emulator::THREADS, [] {});
}

struct Barrier {
    short phases, is_expecting;
    int bytes;  // expected but not arrived; negative if they arrive before they are expected

    void end_phase() {
        if (is_expecting && bytes == 0) phases++, is_expecting = 0;
    }
};
static_assert(sizeof(Barrier) == sizeof(u64), "the size of an mbarrier");

inline void init_barrier(u64* barrier) { *reinterpret_cast<Barrier*>(barrier) = {0, 0, 0}; }

inline void expect_bytes(u64* barrier, int bytes) {
    Barrier& state = *reinterpret_cast<Barrier*>(barrier);
    if (state.is_expecting) emulator::fail("bytes expected twice");
    state.is_expecting = 1;
    state.bytes += bytes;
    state.end_phase();
}

inline void wait_for_bytes(u64* barrier, int parity) {
    while (reinterpret_cast<volatile Barrier*>(barrier)->phases % 2 == parity) emulator::pause();
}

inline void send(int block, void* to, uint4 value, u64* barrier) {
    if (reinterpret_cast<u64>(to) % 16) emulator::fail("misaligned send");
    const long long distance = (block - emulator::current / emulator::THREADS) * emulator::CAPACITY * 16LL;
    std::memcpy(static_cast<char*>(to) + distance, &value, 16);
    Barrier& state = *reinterpret_cast<Barrier*>(reinterpret_cast<char*>(barrier) + distance);
    state.bytes -= 16;
    state.end_phase();
}
