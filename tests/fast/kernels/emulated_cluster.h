// What cluster.cuh has for a GPU, for the programs of a cluster that emulated_cuda.h runs together.

inline uint4* shared_memory() { return shared + emulator::current / emulator::THREADS * emulator::CAPACITY; }

inline void meet_cluster() {
    emulator::meet(emulator::cluster_meeting, emulator::num_programs * emulator::THREADS, [] {});
}

struct Mailbox {
    short rounds, is_expecting;
    int bytes;  // expected and not yet here; less than 0 while they come unexpected

    void end_round() {
        if (is_expecting && bytes == 0) rounds++, is_expecting = 0;
    }
};
static_assert(sizeof(Mailbox) == sizeof(u64), "as large as on a GPU");

inline void open_mailbox(u64* mailbox) { *reinterpret_cast<Mailbox*>(mailbox) = {0, 0, 0}; }

inline void expect_bytes(u64* mailbox, int bytes) {
    Mailbox& box = *reinterpret_cast<Mailbox*>(mailbox);
    if (box.is_expecting) emulator::fail("bytes expected twice");
    box.is_expecting = 1;
    box.bytes += bytes;
    box.end_round();
}

inline void wait_for_bytes(u64* mailbox, int parity) {
    while (reinterpret_cast<volatile Mailbox*>(mailbox)->rounds % 2 == parity) emulator::pause();
}

inline void send(int program, void* to, uint4 value, u64* mailbox) {
    if (reinterpret_cast<u64>(to) % 16) emulator::fail("misaligned send");
    const long long away = (program - emulator::current / emulator::THREADS) * emulator::CAPACITY * 16LL;
    std::memcpy(static_cast<char*>(to) + away, &value, 16);
    Mailbox& box = *reinterpret_cast<Mailbox*>(reinterpret_cast<char*>(mailbox) + away);
    box.bytes -= 16;
    box.end_round();
}
