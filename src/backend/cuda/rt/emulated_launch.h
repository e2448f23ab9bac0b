static void ab_run_thread(const ab_run *run) {
    ab_machine(*run);
    ab_gate_leave(ab_own_warp());
    ab_gate_leave(&ab_block_gate);
}
static void ab_begin_block(uint32_t threads) {
    ab_gate_begin(&ab_block_gate, threads);
    for (uint32_t warp = 0; warp < threads / 32; warp++) ab_gate_begin(&ab_warp_gates[warp], 32);
}
#ifdef __SANITIZE_THREAD__
struct ab_thread {
    const ab_run *run;
    uint32_t thread, block, threads;
};
static void *ab_begin_thread(void *of) {
    const ab_thread *const thread = (const ab_thread *)of;
    threadIdx.x = thread->thread, blockIdx.x = thread->block, blockDim.x = thread->threads;
    ab_run_thread(thread->run);
    return nullptr;
}
extern "C" void ab_emulated(const ab_run *run, uint32_t blocks, uint32_t threads) {
    pthread_attr_t stack;
    pthread_attr_init(&stack);
    pthread_attr_setstacksize(&stack, 4 << 20);
    for (uint32_t block = 0; block < blocks; block++) {
        ab_begin_block(threads);
        pthread_t started[1024];
        ab_thread of[1024];
        for (uint32_t thread = 0; thread < threads; thread++) {
            of[thread] = ab_thread{run, thread, block, threads};
            // Those that are there would wait for it.
            if (pthread_create(&started[thread], &stack, ab_begin_thread, &of[thread]) != 0) abort();
        }
        for (uint32_t thread = 0; thread < threads; thread++) pthread_join(started[thread], nullptr);
    }
    pthread_attr_destroy(&stack);
}
#else
static thread_local const ab_run *ab_own_run;
static thread_local int ab_has_ended;
static void ab_begin_thread(void) {
    ab_run_thread(ab_own_run);
    ab_has_ended = 1;
}
extern "C" void ab_emulated(const ab_run *run, uint32_t blocks, uint32_t threads) {
    const size_t stack = 4 << 20;
    char *const stacks =
        (char *)mmap(nullptr, stack * threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
    ucontext_t *const all = (ucontext_t *)calloc(threads, sizeof *all);
    uint8_t *const ended = (uint8_t *)malloc(threads);
    ab_own_run = run;
    for (uint32_t block = 0; block < blocks; block++) {
        ab_begin_block(threads);
        memset(ended, 0, threads);
        for (uint32_t thread = 0; thread < threads; thread++) {
            getcontext(&all[thread]);
            all[thread].uc_stack.ss_sp = stacks + stack * thread;
            all[thread].uc_stack.ss_size = stack;
            all[thread].uc_link = &ab_all_threads;
            makecontext(&all[thread], ab_begin_thread, 0);
        }
        for (uint32_t left = threads; left > 0;)
            for (uint32_t thread = 0; thread < threads; thread++) {
                if (ended[thread]) continue;
                threadIdx.x = thread, blockIdx.x = block, blockDim.x = threads;
                ab_own_thread = &all[thread], ab_has_ended = 0;
                swapcontext(&ab_all_threads, &all[thread]);
                if (ab_has_ended) ended[thread] = 1, left--;
            }
    }
    free(ended);
    free(all);
    munmap(stacks, stack * threads);
}
#endif
