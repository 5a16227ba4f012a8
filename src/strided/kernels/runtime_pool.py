"""The runtime's thread pool as IR text: one job at a time, parts claimed by compare-and-swap, workers that spin a little and then sleep.

What a job is (a kernel, its descriptor and slots) comes from runtime_calls.py.

A kernel whose descriptor says so in word SHARING gets one slot more, behind its own: the address of what its parts share in this job. TEAM counters that begin at zero, by which
parts claim work from each other as they come; then the address of a table of (memory, its bytes) for each part, kept from job to job, or null where a job runs without the pool.

In a virtual machine Linux holds an idle core for one that the host has taken away and wakes a thread on its waker's core instead: a job of two
milliseconds is over before the scheduler's next look. So whoever wakes workers first forbids them the core it is on itself.
"""
from __future__ import annotations

import sys

# One job at a time. `p_word` holds (generation << 32 | parts << 16 | next part): a worker claims a part by compare-and-swap on the whole word.
# Whether a part is left must follow from the word alone: the job's other fields may already be a newer job's while the word is still the old one's.
# While the word says that a part is left its job is unfinished, so the fields are its own; and a stale word cannot be swapped.
_POOL = r"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@p_word = internal global i64 0
@p_done = internal global i64 0
@p_busy = internal global i64 0
@p_sleepers = internal global i64 0
@p_workers = internal global i64 0
@p_threads = internal global i64 1
@p_patience = internal global i64 0
@p_fn = internal global ptr null
@p_desc = internal global ptr null
@p_slots = internal global ptr null
@p_ids = internal global [MOST x ptr] zeroinitializer          ; the workers' pthread_t,
@p_cores = internal global [MOST x i64] zeroinitializer        ; and the core that each was last forbidden, or -1
@p_memory = internal global [MOST x {ptr, i64}] zeroinitializer  ; what parts keep
@p_mutex = internal global [16 x i64] zeroinitializer, align 64
@p_cond = internal global [16 x i64] zeroinitializer, align 64

define internal void @spin_pause() alwaysinline {
  PAUSE
  ret void
}

; takes parts of generation %gen until none is left
define internal void @work(i64 %gen) {
entry:
  %w = load atomic i64, ptr @p_word acquire, align 8
  br label %look
look:
  %cur = phi i64 [%w, %entry], [%seen, %lost], [%w3, %did]
  %g = lshr i64 %cur, 32
  %same = icmp eq i64 %g, %gen
  br i1 %same, label %mine, label %end
mine:
  %fn = load ptr, ptr @p_fn
  %desc = load ptr, ptr @p_desc
  %slots = load ptr, ptr @p_slots
  %high = lshr i64 %cur, 16
  %parts = and i64 %high, 65535
  %part = and i64 %cur, 65535
  %left = icmp ult i64 %part, %parts
  br i1 %left, label %claim, label %end
claim:
  %next = add i64 %cur, 1
  %pair = cmpxchg ptr @p_word, i64 %cur, i64 %next seq_cst seq_cst
  %seen = extractvalue {i64, i1} %pair, 0
  %won = extractvalue {i64, i1} %pair, 1
  br i1 %won, label %do, label %lost
lost:
  br label %look
do:
  call void %fn(ptr %desc, ptr %slots, i64 %part, i64 %parts)
  %old = atomicrmw add ptr @p_done, i64 1 seq_cst
  br label %did
did:
  %w3 = load atomic i64, ptr @p_word acquire, align 8
  br label %look
end:
  ret void
}

define internal ptr @worker(ptr %first) {             ; %first: the last generation that is over
entry:
  %g0 = ptrtoint ptr %first to i64
  br label %wait
wait:
  %last = phi i64 [%g0, %entry], [%gen, %job]
  br label %spin
spin:
  %i = phi i64 [0, %wait], [%i2, %again], [0, %awake]
  %w = load atomic i64, ptr @p_word acquire, align 8
  %gen = lshr i64 %w, 32
  %new = icmp ne i64 %gen, %last
  br i1 %new, label %job, label %pause
pause:
  call void @spin_pause()
  %i2 = add i64 %i, 1
  %patience = load i64, ptr @p_patience
  %long = icmp ugt i64 %i2, %patience
  br i1 %long, label %sleep, label %again
again:
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @p_mutex)
  %s = atomicrmw add ptr @p_sleepers, i64 1 seq_cst
  br label %check
check:
  %w2 = load atomic i64, ptr @p_word seq_cst, align 8
  %gen2 = lshr i64 %w2, 32
  %still = icmp eq i64 %gen2, %last
  br i1 %still, label %block, label %awake
block:
  call i32 @pthread_cond_wait(ptr @p_cond, ptr @p_mutex)
  br label %check
awake:
  %s2 = atomicrmw sub ptr @p_sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @p_mutex)
  br label %spin
job:
  call void @work(i64 %gen)
  br label %wait
}

define internal void @serial(ptr %fn, ptr %desc, ptr %slots, i64 %parts) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  call void %fn(ptr %desc, ptr %slots, i64 %i, i64 %parts)
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %parts
  br i1 %more, label %loop, label %done
done:
  ret void
}

; the job's slots, and behind them the address of %shared
define internal void @share(ptr %desc, ptr %slots, ptr %own, ptr %shared) {
entry:
  %np = getelementptr i64, ptr %desc, i64 1
  %n = load i64, ptr %np
  %bytes = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %slots, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %shared, i8 0, i64 SHARED, i1 false)
  %last = getelementptr i64, ptr %own, i64 %n
  store ptr %shared, ptr %last
  ret void
}

define internal void @pool_run(ptr %fn, ptr %desc, ptr %given, i64 %parts) {
entry:
  %id = alloca ptr
  %own_slots = alloca [65 x i64], align 64
  %shared = alloca [SHARED x i8], align 64
  %tp = getelementptr i64, ptr %desc, i64 SHARING
  %t = load i64, ptr %tp
  %team = icmp ne i64 %t, 0
  br i1 %team, label %gather, label %begin
gather:
  call void @share(ptr %desc, ptr %given, ptr %own_slots, ptr %shared)
  br label %begin
begin:
  %slots = phi ptr [%given, %entry], [%own_slots, %gather]
  %threads = load i64, ptr @p_threads
  %single = icmp sle i64 %threads, 1
  %many = icmp ugt i64 %parts, 65535                ; more than the word can count
  %one = or i1 %single, %many
  br i1 %one, label %alone, label %lock
alone:
  call void @serial(ptr %fn, ptr %desc, ptr %slots, i64 %parts)
  ret void
lock:                                              ; a second Python thread finds the pool taken and works alone
  %pair = cmpxchg ptr @p_busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue {i64, i1} %pair, 1
  br i1 %free, label %taken, label %alone
taken:
  %few = icmp ule i64 %parts, MOST
  %table = select i1 %few, ptr @p_memory, ptr null
  %place = getelementptr i64, ptr %shared, i64 TEAM
  store ptr %table, ptr %place
  br label %staff
staff:
  %have = load i64, ptr @p_workers
  %wanted = sub i64 %threads, 1
  %need = call i64 @llvm.umin.i64(i64 %wanted, i64 MOST)
  %short = icmp slt i64 %have, %need
  br i1 %short, label %hire, label %publish
hire:
  %w0 = load i64, ptr @p_word
  %gen0 = lshr i64 %w0, 32
  %gp = inttoptr i64 %gen0 to ptr
  %rc = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr %gp)
  %failed = icmp ne i32 %rc, 0
  br i1 %failed, label %publish, label %hired
hired:
  %tid = load ptr, ptr %id
  %ids = getelementptr [MOST x ptr], ptr @p_ids, i64 0, i64 %have
  store ptr %tid, ptr %ids
  %cores = getelementptr [MOST x i64], ptr @p_cores, i64 0, i64 %have
  store i64 -1, ptr %cores
  call i32 @pthread_detach(ptr %tid)
  %h2 = add i64 %have, 1
  store i64 %h2, ptr @p_workers
  br label %staff
publish:
  store ptr %fn, ptr @p_fn
  store ptr %desc, ptr @p_desc
  store ptr %slots, ptr @p_slots
  store atomic i64 0, ptr @p_done seq_cst, align 8
  %w = load i64, ptr @p_word
  %g = lshr i64 %w, 32
  %g1 = add i64 %g, 1
  %gen = and i64 %g1, 4294967295
  %gen32 = shl i64 %gen, 32
  %parts16 = shl i64 %parts, 16
  %word = or i64 %gen32, %parts16
  store atomic i64 %word, ptr @p_word seq_cst, align 8
  %sl = load atomic i64, ptr @p_sleepers seq_cst, align 8
  %asleep = icmp sgt i64 %sl, 0
  br i1 %asleep, label %wake, label %own
wake:
  %hired_now = load i64, ptr @p_workers              ; fewer than needed where no more could be hired
  call void @make_way(i64 %hired_now)
  call i32 @pthread_mutex_lock(ptr @p_mutex)
  call i32 @pthread_cond_broadcast(ptr @p_cond)
  call i32 @pthread_mutex_unlock(ptr @p_mutex)
  br label %own
own:
  call void @work(i64 %gen)
  br label %join
join:
  %i = phi i64 [0, %own], [%i2, %more]
  %d = load atomic i64, ptr @p_done acquire, align 8
  %all = icmp sge i64 %d, %parts
  br i1 %all, label %done, label %relax
relax:
  call void @spin_pause()
  %i2 = add i64 %i, 1
  %much = icmp ugt i64 %i2, 10000
  br i1 %much, label %yield, label %more0
yield:
  call i32 @sched_yield()
  br label %more0
more0:
  br label %more
more:
  br label %join
done:
  store atomic i64 0, ptr @p_busy seq_cst, align 8
  ret void
}

; %patience: looks for a new job before a worker sleeps
define void @strided_set_threads(i64 %n, i64 %patience) {
  store i64 %n, ptr @p_threads
  store i64 %patience, ptr @p_patience
  ret void
}
; in the child of a fork the workers do not exist
define void @strided_after_fork() {
  store i64 0, ptr @p_workers
  store i64 0, ptr @p_busy
  store i64 0, ptr @p_sleepers
  store ptr null, ptr @r_first                       ; nor do the kernels that other threads were running
  store ptr null, ptr @r_last
  call i32 @pthread_mutex_init(ptr @p_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @p_cond, ptr null)
  ret void
}
"""

_LINUX = r"""
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(ptr, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

; sends the workers to the caller's other cores, where there are enough of them; a worker that knows already costs nothing
define internal void @make_way(i64 %workers) {
entry:
  %mask = alloca [128 x i64]                         ; room for 8,192 cores
  %cpu = call i32 @sched_getcpu()
  %here = sext i32 %cpu to i64
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %next]
  %ready = phi i1 [0, %entry], [%ready2, %next]
  %more = icmp ult i64 %i, %workers
  br i1 %more, label %one, label %done
one:
  %core = getelementptr [MOST x i64], ptr @p_cores, i64 0, i64 %i
  %c = load i64, ptr %core
  %same = icmp eq i64 %c, %here
  br i1 %same, label %next, label %move
move:
  br i1 %ready, label %set, label %ask
ask:
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 1024, i1 false)
  %rc = call i32 @sched_getaffinity(i32 0, i64 1024, ptr %mask)
  br label %count
count:
  %k = phi i64 [0, %ask], [%k2, %count]
  %sum = phi i64 [0, %ask], [%sum2, %count]
  %kp = getelementptr [128 x i64], ptr %mask, i64 0, i64 %k
  %bits = load i64, ptr %kp
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum2 = add i64 %sum, %ones
  %k2 = add i64 %k, 1
  %last = icmp eq i64 %k2, 128
  br i1 %last, label %counted, label %count
counted:
  %enough = icmp ugt i64 %sum2, %workers
  br i1 %enough, label %clear, label %set
clear:
  %word = lshr i64 %here, 6
  %slot = getelementptr [128 x i64], ptr %mask, i64 0, i64 %word
  %bit = and i64 %here, 63
  %flag = shl i64 1, %bit
  %others = xor i64 %flag, -1
  %old = load i64, ptr %slot
  %new = and i64 %old, %others
  store i64 %new, ptr %slot
  br label %set
set:
  %ids = getelementptr [MOST x ptr], ptr @p_ids, i64 0, i64 %i
  %id = load ptr, ptr %ids
  %rc2 = call i32 @pthread_setaffinity_np(ptr %id, i64 1024, ptr %mask)
  store i64 %here, ptr %core
  br label %next
next:
  %ready2 = phi i1 [%ready, %one], [1, %set]
  %i2 = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""

# Elsewhere no call binds a thread to cores; the scheduler is left alone.
_ELSEWHERE = """
define internal void @make_way(i64 %workers) {
  ret void
}
"""

_MOST_WORKERS = 1024
SHARING = 7  # the word of a descriptor that says whether the parts of its job share counters,
TEAM = 64  # so many of them


def pool_ir(pause: str, platform: str = sys.platform) -> str:
    """The pool's functions; `pause` is the architecture's spin-wait instruction."""
    text = _POOL + (_LINUX if platform == "linux" else _ELSEWHERE)
    return text.replace("PAUSE", pause).replace("MOST", str(_MOST_WORKERS)).replace("TEAM", str(TEAM)).replace("SHARING", str(SHARING)).replace("SHARED", str(8 * TEAM + 64))
