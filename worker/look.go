package worker

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// hearingPolls is how many times Options.Poll may pass between two looks at all queues while the store hears the signals
	// of every process. They find what somebody did without a signal, by SQL for example.
	hearingPolls = 6
	// lookShare bounds what looks cost: so many times what one took passes until the next.
	lookShare = 20
	// settingsLook is how often a worker reads the settings of queues in which nothing happens, so that it tells of what is
	// wrong with them. Before a claim they are read anyway.
	settingsLook = time.Minute
	// lookWait is how long a queue waits for others to be looked at with it, once its claim got few jobs.
	lookWait = 10 * time.Millisecond
	// farAway is when a queue is looked at again in which nothing waits. The looks at all queues find out before.
	farAway = 24 * time.Hour
	// fewJobs is how many jobs a claim may get to count as the last one for now: the next is put off until a look, which
	// costs less than a claim, says that there is more.
	fewJobs = 3
)

// looking is what the fetching and the looking have to tell each other; guarded by Worker.mu.
type looking struct {
	hears bool    // the store hears all signals
	soon  []*lane // to be looked at in a moment
	all   bool    // all queues are to be looked at now
	found []found // the fetching has not taken it in yet
}

// found is what a look found in some queues.
type found struct {
	lanes []*lane
	asked time.Time
	at    time.Time
	due   map[string]time.Duration // see Store.Look
	err   error
}

// lookOut looks again and again at the queues whose next job nobody knows of, all by one statement, until ctx ends.
func (w *Worker) lookOut(ctx context.Context) {
	timer := time.NewTimer(w.options.Poll)
	defer timer.Stop()
	var took time.Duration
	ahead := time.NewTicker(readAhead)
	defer ahead.Stop()
	for last, read := time.Now(), time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ahead.C:
			w.readSettingsAhead(ctx)
			continue
		case <-timer.C:
		case <-w.looks:
		}
		lanes, all := w.toLookAt(time.Since(last) >= w.lookInterval(took))
		if all {
			last = time.Now()
		}
		if all && time.Since(read) >= settingsLook {
			read = time.Now()
			w.readSettings(ctx)
		}
		if len(lanes) > 0 {
			f := w.lookAt(ctx, lanes)
			if all {
				took = f.at.Sub(f.asked)
			}
			w.mu.Lock()
			w.looking.found = append(w.looking.found, f)
			w.mu.Unlock()
			w.nudge()
		}
		timer.Reset(max(w.lookInterval(took)-time.Since(last), minWait))
	}
}

// readSettings reads the settings of all queues.
func (w *Worker) readSettings(ctx context.Context) {
	queues := w.queues()
	w.settings.Expect(queues...)
	_, _ = w.settings.Queue(ctx, queues[0]) // a claim tells of what goes wrong
}

// lookInterval is how often all queues are looked at, if the last look took so long.
func (w *Worker) lookInterval(took time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	interval := w.options.Poll
	if w.looking.hears {
		interval *= hearingPolls
	}
	return max(interval, lookShare*took)
}

// toLookAt names the queues to look at now: all of them, or those whose look was put off for a moment.
func (w *Worker) toLookAt(all bool) (lanes []*lane, isAll bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lanes, w.looking.soon = w.looking.soon, nil
	if all = all || w.looking.all; all {
		lanes, w.looking.all = w.lanes, false
	}
	return lanes, all
}

func (w *Worker) lookAt(ctx context.Context, lanes []*lane) found {
	queues := make([]string, len(lanes))
	for i, l := range lanes {
		queues[i] = l.queue
	}
	f := found{lanes: lanes, asked: time.Now()}
	f.due, f.err = w.store.Look(ctx, queues)
	f.at = time.Now()
	return f
}

// lookSoon has a queue looked at in a moment, with others of which the same is asked.
func (w *Worker) lookSoon(l *lane) {
	w.mu.Lock()
	w.looking.soon = append(w.looking.soon, l)
	first := len(w.looking.soon) == 1
	w.mu.Unlock()
	if first {
		time.AfterFunc(lookWait, w.wakeLooks)
	}
}

// lookAtAll has all queues looked at now. Hears says how far signals can be relied on; empty: nothing new.
func (w *Worker) lookAtAll(hears sluice.Hearing) {
	w.mu.Lock()
	w.looking.all = true
	if hears != "" {
		w.looking.hears = hears == sluice.HearsAll
	}
	w.mu.Unlock()
	w.wakeLooks()
}

func (w *Worker) wakeLooks() {
	select {
	case w.looks <- struct{}{}:
	default:
	}
}

// takeIn lets the fetching know what was found.
func (w *Worker) takeIn() {
	w.mu.Lock()
	news := w.looking.found
	w.looking.found = nil
	w.mu.Unlock()
	for _, f := range news {
		for _, l := range f.lanes {
			wait, waits := f.due[l.queue]
			l.takeIn(f, wait-l.lead, waits, w.options.Poll)
		}
	}
}

// takeIn sets when a queue is looked at again by what was found. A claim that was answered since knows more, so that it can
// only become sooner.
func (l *lane) takeIn(f found, wait time.Duration, waits bool, poll time.Duration) {
	at := f.at.Add(max(wait, 0))
	switch {
	case f.err != nil: // a claim tells of what is wrong
		at = earlier(l.lookAt, l.claimedAt.Add(poll))
	case !waits:
		at = f.at.Add(farAway)
	case wait <= 0 && l.blocked:
		at = earlier(l.lookAt, l.claimedAt.Add(poll))
	}
	if l.claimedAt.After(f.asked) {
		at = earlier(l.lookAt, at)
		if wait <= 0 {
			return // that claim has taken it
		}
	}
	l.lookAt = later(at, l.heldUntil)
}
