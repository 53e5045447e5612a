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
	// maxTogether is the most queues that one statement claims from.
	maxTogether = 100
	// manyQueues is the number of queues above which their settings are read ahead, because a claim would wait
	// for that.
	manyQueues = 100
	// togetherWait is how long a worker of several queues waits between claims for more hungry queues, if the
	// last claim got few jobs. With 8 workers of 10 queues and 1,000 jobs/s, 5 ms cost a tenth more of all CPU.
	togetherWait = 10 * time.Millisecond
	// missesAfterSignals is how many claims in a row may follow signals and get none, before one from the queue alone.
	missesAfterSignals = 10
	// readAhead is how often the worker reads the settings of many queues ahead.
	readAhead = 800 * time.Millisecond
)

// together is a claim from several queues.
type together struct {
	serving []*servedQueue
	queues  []sluice.Queue // of the served queues, with their settings
	request sluice.ClaimRequest
	stale   string // a queue whose settings may be old; empty: none
}

// claimAllTogether claims from all hungry queues without limits, many in one statement. A worker of one queue leaves
// it to fetchOnce, which claims from it alone, like from queues with limits.
func (w *Worker) claimAllTogether(ctx, work context.Context) {
	for range len(w.served())/maxTogether + 1 {
		t := w.gatherHungry(ctx)
		if len(t.serving) == 0 || len(w.served()) == 1 || ctx.Err() != nil {
			for _, l := range t.serving {
				l.plain = false // fetchOnce claims from it alone this time
			}
			return
		}
		w.claimTogether(ctx, work, t)
	}
}

// claimTogether claims from several queues in one statement.
func (w *Worker) claimTogether(ctx, work context.Context, t *together) {
	for _, l := range t.serving {
		l.woken = l.hungry.Swap(false)
	}
	var reading sync.WaitGroup
	if t.stale != "" {
		reading.Go(func() { _, _ = w.settings.Queue(ctx, t.stale) }) // on error, the previous settings apply
	}
	asked := time.Now()
	claimed, err := w.store.Claim(work, t.request)
	reading.Wait()
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		w.log.Emit(event.ClaimFailed, t.serving[0].queue, "error", err)
	}
	w.sparse = 4*len(claimed.Jobs) < t.request.Limit
	jobs := make(map[string][]*sluice.Claim, len(t.serving))
	for _, c := range claimed.Jobs {
		jobs[c.Queue] = append(jobs[c.Queue], c)
	}
	for i, l := range t.serving {
		l.claimedAt, l.blocked, l.held, l.lead = time.Now(), false, false, 0
		if err != nil {
			l.lookAt = l.claimedAt.Add(w.options.Poll)
			continue
		}
		if queue, _, read := w.settings.Latest(l.queue); read {
			t.queues[i] = queue
		}
		l.paused, l.logAfter = w.log.EmitPause(t.queues[i], l.paused), 0
		w.startOrHandBack(ctx, work, l, &t.queues[i], jobs[l.queue], asked)
		w.afterTogether(l, len(jobs[l.queue]), t.request.Queues[i].Limit)
	}
}

// gatherHungry chooses the queues to claim from together.
func (w *Worker) gatherHungry(ctx context.Context) *together {
	t := &together{}
	w.mu.Lock()
	left, _ := w.roomInAll()
	w.mu.Unlock()
	left = min(left, maxClaim)
	now := time.Now()
	for _, l := range w.served() {
		if len(t.serving) == maxTogether || left <= 0 {
			break
		}
		if l.alone || l.many != nil || l.rests(now) {
			continue
		}
		queue, fresh, read := w.settings.Latest(l.queue)
		if !read { // this also reads the settings of all other queues that were not read
			var err error
			queue, err = w.settings.Queue(ctx, l.queue)
			read, fresh = err == nil, true
		}
		room := min(w.room(l), left)
		if l.plain = read && plain(queue); !read {
			break // the store does not answer: a claim logs the error
		}
		if room <= 0 || !l.plain {
			continue
		}
		if !fresh {
			t.stale = l.queue
		}
		t.serving, t.queues = append(t.serving, l), append(t.queues, queue)
		t.request.Queues = append(t.request.Queues, sluice.QueueClaim{Queue: l.queue, Limit: room, Lease: queue.Settings.Lease, Ageing: queue.Settings.Ageing})
	}
	t.request.Holder, t.request.Token, t.request.Limit = w.holder.ID, sluice.NewToken(), left
	return t
}

// plain reports whether a claim of several queues may take a queue's jobs, with the same result as a claim from
// it alone.
func plain(q sluice.Queue) bool {
	s := q.Settings
	return !q.ByTenant && s.Rate.IsZero() && s.Concurrency == 0 && s.Limits == "" && s.Engine == "" && s.ClaimAhead == 0 && s.Interval == 0 && s.Batch == 0
}

// handBack releases jobs that were claimed while the worker was stopping.
func (w *Worker) handBack(l *servedQueue, jobs []*sluice.Claim) {
	for _, c := range jobs {
		w.unsettled.Add(1)
		w.begun.Gone(c.Token, 1)
		w.settlements <- decided{w.release(c, "worker shut down"), l}
	}
}

// afterTogether sets the next look at a queue by how many of the possible jobs the claim got. If a queue seems
// to have jobs but gives none twice, the next claim takes from it alone, to find out why. After a signal another
// process may have been faster: then only missesAfterSignals such claims count as much.
func (w *Worker) afterTogether(l *servedQueue, got, limit int) {
	l.misses++
	if got > 0 {
		l.misses = 0
	}
	l.alone = l.misses >= 2 && (!l.woken || l.misses >= missesAfterSignals)
	switch {
	case got == limit:
		l.hungry.Store(true)
		w.nudge()
	case got > fewJobs:
		l.lookAt = time.Now().Add(minWait)
	default:
		l.lookAt = time.Now().Add(w.options.Poll)
		w.lookSoon(l)
	}
}

// readSettingsAhead reads the settings of many queues before the cached settings are too old for claims.
func (w *Worker) readSettingsAhead(ctx context.Context) {
	if len(w.served()) > manyQueues {
		_ = w.settings.Refresh(ctx) // a claim logs the error
	}
}
