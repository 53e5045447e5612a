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
	// smallClaimWait is how long a claim waits for more room while there is less than a quarter of
	// it. Claims of one job each cost ten times as much as claims of many.
	smallClaimWait = 3 * time.Millisecond
	// minWait keeps a look at a queue whose next job is due, but held by another claim in this
	// moment, from being repeated at once.
	minWait = 5 * time.Millisecond
	// maxUnsettled stops claiming while so many settlements per slot wait to be written.
	maxUnsettled = 8
	// aheadTime is for how long jobs are claimed ahead of free slots. Where handlers are quick, the
	// slots would stand idle while a claim is under way; where they are slow, nothing is claimed
	// ahead. With 100 slots and empty handlers it doubles the rate.
	aheadTime = 2 * time.Millisecond
	// maxClaim bounds one claim; beyond some hundreds, larger ones are no cheaper per job.
	maxClaim = 1000
	// maxAhead bounds what is claimed ahead: the slots work off one claim's jobs while the next is under way.
	maxAhead = 2 * maxClaim
)

// fetch claims jobs whenever there are free slots and hungry queues, until ctx ends. Handlers run
// under work.
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
		w.sparse = false
		timer.Reset(w.fetchOnce(ctx, work))
		lastClaim = time.Now()
	}
}

// holdBack says how long to wait for more free slots before the next claim.
func (w *Worker) holdBack(lastClaim time.Time) time.Duration {
	if w.unsettled.Load() > int64(maxUnsettled*w.options.Slots+settleBatch) {
		return smallClaimWait
	}
	w.mu.Lock()
	room, most := w.roomInAll()
	several := len(w.lanes) > 1
	w.mu.Unlock()
	if 4*room >= most {
		if several && w.sparse {
			return togetherWait - time.Since(lastClaim)
		}
		return 0
	}
	return smallClaimWait - time.Since(lastClaim)
}

// ahead is how many jobs may be claimed beyond the slots: as many as the slots work off within
// aheadTime, by what handlers took lately.
func (w *Worker) ahead() int {
	if w.pace <= 0 {
		return 0
	}
	return int(min(maxAhead, int64(w.options.Slots)*int64(aheadTime)/int64(w.pace)))
}

// fetchOnce claims once from each hungry queue, in order, and says how long until the next look.
func (w *Worker) fetchOnce(ctx, work context.Context) time.Duration {
	w.takeIn()
	w.keepClock(ctx)
	w.claimAllTogether(ctx, work)
	next := time.Now().Add(w.options.Poll)
	for _, l := range w.served() {
		if l.rests(time.Now()) {
			next = earlier(earlier(next, l.lookAt), w.tellBegun(work, l))
			continue
		}
		room := w.room(l)
		if room == 0 { // a handler that ends nudges
			next = earlier(next, w.tellBegun(work, l))
			continue
		}
		if l.plain && !l.alone { // it became hungry a moment ago
			next = time.Now()
			continue
		}
		l.hungry.Store(false)
		l.alone, l.gaveNone = false, false
		if wait := w.claim(ctx, work, l, room); wait > 0 {
			l.lookAt = time.Now().Add(wait)
			next = earlier(next, l.lookAt)
			if l.tellAfter > 0 {
				next = earlier(next, time.Now().Add(l.tellAfter))
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

// roomInAll is how many more jobs may be claimed now, and how many at the most may be held; w.mu is held.
func (w *Worker) roomInAll() (room, most int) {
	most = w.options.Slots + w.ahead()
	return most - len(w.running) + w.early, most
}

// room is how many jobs of a queue may be claimed now. A queue that may not use all slots gets
// nothing ahead.
func (w *Worker) room(l *lane) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	room, _ := w.roomInAll()
	if l.slots < w.options.Slots {
		room = min(room, l.slots-l.taken+l.early)
	}
	return max(0, min(room, maxClaim))
}

// earlyRoom is how many jobs of a queue may be claimed before they are due: as many as it may use slots.
func (w *Worker) earlyRoom(l *lane) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(l.slots-l.early, w.options.Slots-w.early)
}

// claim takes jobs of a queue and starts their handlers. It says how long to wait before the queue
// is looked at again; 0: there may be more at once. Where all that is due was taken, it takes what will be due
// soon, if the queue has a lead.
func (w *Worker) claim(ctx, work context.Context, l *lane, room int) time.Duration {
	queue, err := w.settingsOf(ctx, l)
	if err != nil {
		return w.fetchFailed(ctx, l, err)
	}
	begun := time.Now()
	got, wait := w.claimWithin(ctx, work, l, &queue, room, 0)
	if early := w.earlyRoom(l); queue.Settings.Lead > 0 && wait > 0 && early > 0 && got >= 0 && !l.limited() && ctx.Err() == nil {
		_, wait = w.claimWithin(ctx, work, l, &queue, early, queue.Settings.Lead)
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

// settingsOf gives the settings that a claim goes by. Those that may be old are read anew beside it; see claimBeside.
func (w *Worker) settingsOf(ctx context.Context, l *lane) (sluice.Queue, error) {
	queue, _, read := w.settings.Latest(l.queue)
	if read {
		return queue, nil
	}
	return w.settings.Queue(ctx, l.queue)
}

// claimBeside claims, and reads the queue's settings at the same time where they may be old: what was claimed goes by the
// new ones. A worker that was idle would else lose the time of a question with its first job.
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

// claimWithin claims once, what is due within the lead. It says how many jobs it got, and how long to wait
// before it is done again. After an error it got -1.
func (w *Worker) claimWithin(ctx, work context.Context, l *lane, queue *sluice.Queue, room int, lead time.Duration) (got int, wait time.Duration) {
	if batch := queue.Settings.Batch; batch > 0 {
		room = min(room, batch)
	}
	request := sluice.ClaimRequest{
		Queue: l.queue, Limit: room, Holder: w.holder.ID, Lease: queue.Settings.Lease, Token: sluice.NewToken(),
		Ageing: queue.Settings.Ageing, Lead: lead, Tells: true, Begun: w.begun.Tell(l.queue),
	}
	asked, ended := time.Now(), l.ended.Load()
	// Not ctx: a claim whose answer is thrown away leaves jobs held by nobody until the lease ends.
	claimed, err := w.claimBeside(ctx, work, queue, request)
	l.claimedAt = time.Now()
	l.paused, l.lead = w.log.NoticePause(*queue, l.paused), queue.Settings.Lead
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
		l.heldUntil = time.Now().Add(wait) // more jobs make no more tokens
		return got, wait
	case got > fewJobs, got > 0 && lead > 0:
		return got, minWait // there may be more by then; a claim that finds nothing tells when the next job is due
	case got > 0:
		w.lookSoon(l)
		return got, w.options.Poll
	case claimed.NextDue < 0:
		return got, farAway
	}
	return got, max(claimed.NextDue, minWait)
}

// startOrHandBack starts what was claimed of a queue, and says how many jobs it started: none if the worker was told to end
// while the claim was under way.
func (w *Worker) startOrHandBack(ctx, work context.Context, l *lane, queue *sluice.Queue, jobs []*sluice.Claim, asked time.Time) int {
	switch {
	case len(jobs) == 0:
		return 0
	case ctx.Err() != nil:
		w.handBack(l, jobs)
		return 0
	}
	w.tellClaimed(l, jobs)
	w.start(work, l, jobs, queue, asked)
	return len(jobs)
}

func (w *Worker) tellClaimed(l *lane, claims []*sluice.Claim) {
	w.log.Tell(event.JobsClaimed, l.queue, "jobs", len(claims))
	for _, c := range claims {
		w.log.TellJob(event.JobClaimed, c, "priority", c.Priority)
	}
}

// rests reports whether the queue is not to be looked at yet.
func (l *lane) rests(now time.Time) bool {
	return now.Before(l.heldUntil) || !l.hungry.Load() && now.Before(l.lookAt)
}

// limited reports whether the queue's limits hold its jobs back now.
func (l *lane) limited() bool { return l.held || time.Now().Before(l.heldUntil) }

// waitForEnd is for a queue in which no more jobs, or no more of some tenant, may be in flight: the next of
// its jobs that ends makes it hungry again, unless one has ended since the claim was asked for.
func (w *Worker) waitForEnd(l *lane, ended int64, nextDue time.Duration) time.Duration {
	l.full.Store(true)
	if l.ended.Load() != ended {
		return minWait
	}
	if nextDue < 0 {
		return w.options.Poll
	}
	return min(max(nextDue, minWait), w.options.Poll)
}

func (w *Worker) fetchFailed(ctx context.Context, l *lane, err error) time.Duration {
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		w.log.Tell(event.ClaimFailed, l.queue, "error", err)
	}
	return w.options.Poll
}
