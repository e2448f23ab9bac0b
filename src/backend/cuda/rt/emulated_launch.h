static void *ab_begin_thread(void *of) {
    const ab_thread *const thread = (const ab_thread *)of;
    threadIdx.x = thread->thread, blockIdx.x = thread->block, blockDim.x = thread->threads;
    ab_machine(*thread->run);
    ab_gate_leave(ab_own_warp());
    ab_gate_leave(&ab_block_gate);
    return nullptr;
}
// All blocks, one after the other; a number of `errno` where threads cannot be started.
extern "C" int ab_emulated(const ab_run *run, uint32_t blocks, uint32_t threads) {
    pthread_attr_t stack;
    pthread_attr_init(&stack);
    pthread_attr_setstacksize(&stack, 4 << 20);
    int status = 0;
    for (uint32_t block = 0; block < blocks && status == 0; block++) {
        ab_gate_begin(&ab_block_gate, threads);
        for (uint32_t warp = 0; warp < threads / 32; warp++) ab_gate_begin(&ab_warp_gates[warp], 32);
        pthread_t started[1024];
        ab_thread of[1024];
        for (uint32_t thread = 0; thread < threads; thread++) {
            of[thread] = ab_thread{run, thread, block, threads};
            status = pthread_create(&started[thread], &stack, ab_begin_thread, &of[thread]);
            if (status != 0) abort();
        }
        for (uint32_t thread = 0; thread < threads; thread++) pthread_join(started[thread], nullptr);
    }
    pthread_attr_destroy(&stack);
    return status;
}
