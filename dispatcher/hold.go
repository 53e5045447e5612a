package dispatcher

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/pause"
)

const (
	// asideDoubts is the number of doubtful answers after which a job is set aside, if the engine worked for
	// others meanwhile. The engine is then asked for it rarely, and its answers say nothing about the engine.
	asideDoubts = 3
	// asideMax is the longest pause before the engine is asked again for a job set aside.
	asideMax = 5 * time.Minute
	// askAgain is the most jobs for which one request outside the cycles asks again.
	askAgain = 16
	// maxProbes is the most jobs used, in turns, to try an unusable engine. dullProbe is the number of doubtful
	// answers after which another job replaces one of them.
	maxProbes = 8
	dullProbe = 20
)

// hold is a claimed job on its way to its engine. The servedQueue's mu guards the fields that change.
type hold struct {
	claim *sluice.Claim
	run   engine.Run
	lease time.Duration
	asked time.Time // when its claim was sent to the store
	// renewed is when the lease began or was checked; at least two thirds of it were left then.
	renewed time.Time
	// fresh is true until an engine is asked for the run. Until then the job can be handed back.
	fresh bool
	// begun is true if the current or last call was about to ask the engine.
	begun bool
	// doubtful is true if an engine was asked for the run and may or may not have started it. From then on,
	// only a clear answer settles the job.
	doubtful bool
	doubts   int       // how many answers in a row were doubtful
	doubtAt  time.Time // when the first of them came
	askedAt  time.Time // when the last of them came; zero: none came
	againAt  time.Time // when to ask again
	aside    bool      // set aside, because the engine works for other jobs
	asking   bool      // asked for outside the cycles now
	// answer is the settlement that is decided but not written yet.
	answer *sluice.Settlement
	// adopted describes the lost job that started the run; empty: the run was started for this job.
	adopted string
	// lost is why the dispatcher lets the job go: another holder has it, a person ended it, or only upkeep may
	// decide on it. Empty: the job is not lost.
	lost string
}

// doubt records an answer that leaves open whether the run started.
func (h *hold) doubt(now time.Time, poll, probe time.Duration) {
	if !h.doubtful {
		h.doubtful, h.doubtAt = true, now
	}
	h.doubts++
	h.askedAt = now
	h.againAt = now.Add(min(poll, probe))
	if h.aside {
		h.againAt = now.Add(min(probe<<max(min(h.doubts-asideDoubts, 16), 0), asideMax))
	}
}

// sure reports whether the lease certainly lasts longer than a call may take, by the two thirds that were left.
func (h *hold) sure() bool { return pause.Since(h.renewed) <= h.lease/2 }

// unanswered reports whether a held job still needs a request to the engine.
func unanswered(h *hold) bool { return h.answer == nil && h.lost == "" && !h.asking }

// fresh lists the jobs that no engine was asked for so far.
func (l *servedQueue) fresh() []*hold {
	return l.holding(func(h *hold) bool { return unanswered(h) && h.fresh })
}

// stalled returns how long until the engine may be asked for jobs that this process had to put off; 0: at once.
// Until then the dispatcher claims no more.
func (l *servedQueue) stalled(now time.Time) (wait time.Duration) {
	for _, h := range l.fresh() {
		wait = max(wait, h.againAt.Sub(now))
	}
	return wait
}

// doubtful lists the jobs to ask the engine for again now, in the order of their last request.
func (l *servedQueue) doubtful(now time.Time, aside bool) []*hold {
	return oldest(l.holding(func(h *hold) bool {
		h.aside = h.aside || h.doubts >= asideDoubts && !l.workedAt.Before(h.doubtAt)
		return unanswered(h) && !h.fresh && (aside || !h.aside) && !now.Before(h.againAt)
	}))
}

func oldest(holds []*hold) []*hold {
	slices.SortFunc(holds, func(a, b *hold) int {
		return cmp.Or(a.askedAt.Compare(b.askedAt), slices.Compare(a.claim.ID[:], b.claim.ID[:]))
	})
	return holds
}

// probe chooses jobs to try an unusable engine with. Held jobs take turns, because a single job may be the
// cause. If no other is held, the dispatcher may claim one more.
func (l *servedQueue) probe(now time.Time) (held []*hold, more bool) {
	held = append(l.fresh(), l.doubtful(now, false)...)
	if len(held) == 0 {
		return nil, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(held) >= maxProbes && held[0].doubts >= dullProbe {
		held[0].aside = true
		return nil, true
	}
	return held[:1], held[0].doubts >= 2 && len(held) < maxProbes
}

// letGo gives up the decision about held jobs.
func (l *servedQueue) letGo(why string, holds ...*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		if h.answer == nil && h.lost == "" {
			h.lost = why
		}
	}
}
