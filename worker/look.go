package worker

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// hearingPolls is how many times Options.Poll may pass between two looks at all queues while the store
	// receives the signals of every process. The looks find changes made without a signal, by SQL for example.
	hearingPolls = 8
	// lookShare limits the cost of looks: the pause after a look is this many times its duration.
	lookShare = 20
	// settingsLook is how often a worker reads the settings of idle queues, to log problems with them. A claim
	// reads its settings in any case.
	settingsLook = time.Minute
	// lookWait is how long a queue waits for others to share its look, once its claim got few jobs.
	lookWait = 10 * time.Millisecond
	// farAway is the time until the next look at an empty queue. The looks at all queues find new jobs before.
	farAway = 24 * time.Hour
	// fewJobs is the most jobs that a claim may get and still count as the last for now. The next claim then
	// waits for a look, which costs less than a claim, to find more jobs.
	fewJobs = 3
)

// looking holds the messages between fetch and lookOut; guarded by Worker.mu.
type looking struct {
	hears bool           // the store receives all signals
	soon  []*servedQueue // queues to look at in a moment
	all   bool           // look at all queues now
	found []found        // results that fetch has not taken in yet
}

// found is the result of a look at some queues.
type found struct {
	serving []*servedQueue
	asked   time.Time
	at      time.Time
	due     map[string]time.Duration // see Store.Look
	err     error
}

// lookOut asks the store again and again which queues have jobs, with one statement for all queues, until ctx
// ends.
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
		serving, all := w.toLookAt(time.Since(last) >= w.lookInterval(took))
		if all {
			last = time.Now()
		}
		if all && time.Since(read) >= settingsLook {
			read = time.Now()
			w.readSettings(ctx)
		}
		if len(serving) > 0 {
			f := w.lookAt(ctx, serving)
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
	_, _ = w.settings.Queue(ctx, queues[0]) // a claim logs the error
}

// lookInterval returns the time between two looks at all queues, if the last look took so long.
func (w *Worker) lookInterval(took time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	interval := w.options.Poll
	if w.looking.hears {
		interval *= hearingPolls
	}
	return max(interval, lookShare*took)
}

// toLookAt returns the queues to look at now: all of them, or those whose look was put off for a moment.
func (w *Worker) toLookAt(all bool) (serving []*servedQueue, isAll bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	serving, w.looking.soon = w.looking.soon, nil
	if all = all || w.looking.all; all {
		serving, w.looking.all = w.serving, false
	}
	return serving, all
}

func (w *Worker) lookAt(ctx context.Context, serving []*servedQueue) found {
	queues := make([]string, len(serving))
	for i, l := range serving {
		queues[i] = l.queue
	}
	f := found{serving: serving, asked: time.Now()}
	f.due, f.err = w.store.NextDue(ctx, queues)
	f.at = time.Now()
	return f
}

// lookSoon requests a look at a queue in a moment, together with other queues.
func (w *Worker) lookSoon(l *servedQueue) {
	w.mu.Lock()
	w.looking.soon = append(w.looking.soon, l)
	first := len(w.looking.soon) == 1
	w.mu.Unlock()
	if first {
		time.AfterFunc(lookWait, w.wakeLooks)
	}
}

// lookAtAll requests a look at all queues now. hears states how far the store receives signals; empty:
// unchanged.
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

// takeIn applies the results of looks to the queues that fetch serves.
func (w *Worker) takeIn() {
	w.mu.Lock()
	news := w.looking.found
	w.looking.found = nil
	w.mu.Unlock()
	for _, f := range news {
		for _, l := range f.serving {
			wait, waits := f.due[l.queue]
			l.takeIn(f, wait-l.lead, waits, w.options.Poll)
		}
	}
}

// takeIn sets the next look at a queue from a look's result. A claim answered after the look knows more, so the
// look may then only bring the time forward.
func (l *servedQueue) takeIn(f found, wait time.Duration, waits bool, poll time.Duration) {
	at := f.at.Add(max(wait, 0))
	switch {
	case f.err != nil: // the next claim logs the error
		at = earlier(l.lookAt, l.claimedAt.Add(poll))
	case !waits:
		at = f.at.Add(farAway)
	case wait <= 0 && l.blocked:
		at = earlier(l.lookAt, l.claimedAt.Add(poll))
	}
	if l.claimedAt.After(f.asked) {
		at = earlier(l.lookAt, at)
		if wait <= 0 {
			return // the later claim has taken the jobs
		}
	}
	l.lookAt = later(at, l.heldUntil)
}
