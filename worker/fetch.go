package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// smallClaimWait is how long a claim waits for more room while less than a quarter is free. A job claimed
	// alone costs ten times as much as a job of a large claim.
	smallClaimWait = 3 * time.Millisecond
	// minWait is the least time between two looks at a queue whose next job is due but locked by another claim.
	minWait = 5 * time.Millisecond
	// maxUnsettled stops claiming while this many settlements per slot wait to be written.
	maxUnsettled = 8
	// aheadTime bounds the jobs claimed ahead of free slots, in handler time. Quick handlers would leave slots
	// idle during a claim; slow handlers get nothing ahead. With 100 slots and empty handlers, 2 ms doubles the
	// rate.
	aheadTime = 2 * time.Millisecond
	// maxClaim bounds one claim. Beyond some hundreds of jobs, larger claims are no cheaper per job.
	maxClaim = 1000
	// maxAhead bounds the jobs claimed ahead: the slots run the jobs of one claim while the next is under way.
	maxAhead = 2 * maxClaim
)

// fetch claims jobs whenever there are free slots and hungry queues, until ctx ends. Handlers run under work.
func (w *Worker) fetch(ctx, work context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lastClaim time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
		if ctx.Err() != nil {
			return
		}
		if wait := w.holdBack(lastClaim); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if !w.ear.Begin() {
			w.releaseWaiting("worker was told to quiesce", func(*run) bool { return true })
			timer.Reset(w.options.Poll)
			continue
		}
		w.sparse = false
		timer.Reset(w.fetchOnce(ctx, work))
		w.ear.End()
		lastClaim = time.Now()
	}
}

// holdBack returns how long to wait for more free slots before the next claim.
func (w *Worker) holdBack(lastClaim time.Time) time.Duration {
	if w.unsettled.Load() > int64(maxUnsettled*w.options.Slots+settleBatch) {
		return smallClaimWait
	}
	w.mu.Lock()
	room, most := w.roomInAll()
	several := len(w.serving) > 1
	w.mu.Unlock()
	if 4*room >= most {
		if several && w.sparse {
			return togetherWait - time.Since(lastClaim)
		}
		return 0
	}
	return smallClaimWait - time.Since(lastClaim)
}

// ahead returns how many jobs may be claimed beyond the slots: the number that the slots finish within
// aheadTime, by the recent durations of handlers.
func (w *Worker) ahead() int {
	if w.pace <= 0 {
		return 0
	}
	return int(min(maxAhead, int64(w.options.Slots)*int64(aheadTime)/int64(w.pace)))
}

// fetchOnce claims once from each hungry queue, in order, and returns the time until the next look.
func (w *Worker) fetchOnce(ctx, work context.Context) time.Duration {
	w.takeIn()
	w.keepClock(ctx)
	now := time.Now()
	next := now.Add(w.options.Poll)
	for _, l := range w.served() {
		next = l.wakeAgain(now, next)
	}
	w.claimAllTogether(ctx, work)
	for _, l := range w.served() {
		if ctx.Err() != nil { // a store that hangs would let each further queue take the deadline of a call
			return 0
		}
		if l.rests(time.Now()) {
			next = earlier(earlier(next, l.lookAt), w.reportBegun(work, l))
			continue
		}
		room := w.room(l)
		if room == 0 { // the next handler that ends calls nudge
			next = earlier(next, w.reportBegun(work, l))
			continue
		}
		if l.plain && !l.alone { // it became hungry a moment ago, so the next round claims from it with others
			next = time.Now()
			continue
		}
		l.hungry.Store(false)
		l.alone, l.misses = false, 0
		if wait := w.claim(ctx, work, l, room); wait > 0 {
			l.lookAt = time.Now().Add(wait)
			next = earlier(next, l.lookAt)
			if l.logAfter > 0 {
				next = earlier(next, time.Now().Add(l.logAfter))
			}
			continue
		}
		l.hungry.Store(true)
		w.nudge()
	}
	return max(time.Until(next), 0)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// roomInAll returns how many more jobs may be claimed now, and the most that may be held. The caller holds
// w.mu.
func (w *Worker) roomInAll() (room, most int) {
	most = w.options.Slots + w.ahead()
	return most - len(w.running) + w.early + w.inMany, most
}

// room returns how many jobs of a queue may be claimed now. A queue limited to some of the slots gets nothing
// ahead.
func (w *Worker) room(l *servedQueue) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.many != nil { // its jobs take no slots
		return l.many.room(l.slots, l.taken)
	}
	room, _ := w.roomInAll()
	if l.slots < w.options.Slots {
		room = min(room, l.slots-l.taken+l.early)
	}
	return max(0, min(room, maxClaim))
}

// earlyRoom returns how many jobs of a queue may be claimed before they are due: at most one per slot.
func (w *Worker) earlyRoom(l *servedQueue) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.many != nil {
		return 0 // a call begins when its first job is there
	}
	return min(l.slots-l.early, w.options.Slots-w.early)
}

// claim takes jobs of a queue and starts their handlers. If the queue sets claim_ahead and nothing else is due,
// claim also takes the jobs that will be due within that time. The result is the time until the next look at the
// queue. 0 means that more jobs may be due now.
func (w *Worker) claim(ctx, work context.Context, l *servedQueue, room int) time.Duration {
	queue, err := w.settingsOf(ctx, l)
	if err != nil {
		return w.fetchFailed(ctx, l, err)
	}
	begun := time.Now()
	got, wait := w.claimWithin(ctx, work, l, &queue, room, 0)
	if early := w.earlyRoom(l); queue.Settings.ClaimAhead > 0 && wait > 0 && early > 0 && got >= 0 && !l.limited() && ctx.Err() == nil {
		_, wait = w.claimWithin(ctx, work, l, &queue, early, queue.Settings.ClaimAhead)
		if got > 0 {
			wait = min(wait, minWait)
		}
	}
	if rest := queue.Settings.Interval - time.Since(begun); rest > 0 {
		l.heldUntil = time.Now().Add(max(rest, time.Until(l.heldUntil)))
		return max(wait, rest)
	}
	return wait
}

// settingsOf returns the settings that a claim uses. claimBeside reads old settings again during the claim.
func (w *Worker) settingsOf(ctx context.Context, l *servedQueue) (sluice.Queue, error) {
	queue, _, read := w.settings.Latest(l.queue)
	if read {
		return queue, nil
	}
	return w.settings.Queue(ctx, l.queue)
}

// claimBeside claims and, if the settings may be old, reads them at the same time. The claimed jobs then use
// the new settings. Without this, an idle worker would delay its first job by one store round trip.
func (w *Worker) claimBeside(ctx, work context.Context, queue *sluice.Queue, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if _, fresh, _ := w.settings.Latest(queue.Name); fresh {
		return w.store.Claim(work, request)
	}
	var reading sync.WaitGroup
	var now sluice.Queue
	var failed error
	reading.Go(func() { now, failed = w.settings.Queue(ctx, queue.Name) })
	claimed, err := w.store.Claim(work, request)
	reading.Wait()
	if failed == nil {
		*queue = now
	}
	return claimed, err
}

// claimWithin claims once, and takes the jobs that are due within lead. got is how many jobs it took, or -1 after
// an error. wait is the time until the next claim.
func (w *Worker) claimWithin(ctx, work context.Context, l *servedQueue, queue *sluice.Queue, room int, lead time.Duration) (got int, wait time.Duration) {
	if batch := queue.Settings.Batch; batch > 0 {
		room = min(room, batch)
	}
	request := sluice.ClaimRequest{
		Queue: l.queue, Limit: room, Holder: w.holder.ID, Lease: queue.Settings.Lease, Token: sluice.NewToken(),
		Ageing: queue.Settings.Ageing, ClaimAhead: lead, ReportsBegun: true, Begun: w.begun.Report(l.queue),
	}
	asked, ended := time.Now(), l.ended.Load()
	// Use work, not ctx: if the answer to a claim is thrown away, its jobs stay locked until the lease ends.
	claimed, err := w.claimBeside(ctx, work, queue, request)
	l.claimedAt = time.Now()
	l.paused, l.lead = w.log.EmitPause(*queue, l.paused), queue.Settings.ClaimAhead
	if err != nil {
		return -1, w.fetchFailed(ctx, l, err)
	}
	w.tenants.Saw(*queue, claimed)
	w.paced(l, queue.Settings, request, claimed)
	got = w.startOrHandBack(ctx, work, l, queue, claimed.Jobs, asked)
	w.sparse = 4*got < room
	l.held, l.blocked = claimed.Limited && claimed.Full, claimed.Limited || claimed.Full
	switch {
	case got == room:
		return got, 0
	case claimed.Full:
		return got, w.waitForEnd(l, ended, claimed.NextDue)
	case claimed.Limited:
		wait = min(max(claimed.NextDue, minWait), w.options.Poll)
		l.heldUntil = time.Now().Add(wait) // the rate admits no more jobs, even if more become due
		return got, wait
	case got > fewJobs, got > 0 && lead > 0:
		return got, minWait // more may be due by then; a claim that finds nothing returns when the next job is due
	case got > 0:
		w.lookSoon(l)
		return got, w.options.Poll
	case claimed.NextDue < 0:
		return got, farAway
	}
	return got, max(claimed.NextDue, minWait)
}

// startOrHandBack starts the claimed jobs of a queue and returns how many it started. If the worker was stopped
// during the claim, the function hands all jobs back and returns 0.
func (w *Worker) startOrHandBack(ctx, work context.Context, l *servedQueue, queue *sluice.Queue, jobs []*sluice.Claim, asked time.Time) int {
	switch {
	case len(jobs) == 0:
		return 0
	case ctx.Err() != nil:
		w.handBack(l, jobs)
		return 0
	}
	w.logClaimed(l, jobs)
	w.start(work, l, jobs, queue, asked)
	return len(jobs)
}

func (w *Worker) logClaimed(l *servedQueue, claims []*sluice.Claim) {
	w.log.Emit(event.JobsClaimed, l.queue, "jobs", len(claims))
	for _, c := range claims {
		w.log.EmitJob(event.JobClaimed, c, "priority", c.Priority)
	}
}

// rests reports whether it is too early to look at the queue again.
func (l *servedQueue) rests(now time.Time) bool {
	return now.Before(l.heldUntil) || !l.hungry.Load() && now.Before(l.lookAt)
}

// limited reports whether the queue's limits hold its jobs back now.
func (l *servedQueue) limited() bool { return l.held || time.Now().Before(l.heldUntil) }

// waitForEnd waits in a queue that has reached its own or a tenant's concurrency limit. The next job of the
// queue that ends makes it hungry again. If one has ended since the claim was sent, the wait is only minWait.
func (w *Worker) waitForEnd(l *servedQueue, ended int64, nextDue time.Duration) time.Duration {
	l.full.Store(true)
	if l.ended.Load() != ended {
		return minWait
	}
	if nextDue < 0 {
		return w.options.Poll
	}
	return min(max(nextDue, minWait), w.options.Poll)
}

func (w *Worker) fetchFailed(ctx context.Context, l *servedQueue, err error) time.Duration {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		w.log.Emit(event.ClaimFailed, l.queue, "error", err)
	}
	return w.options.Poll
}
