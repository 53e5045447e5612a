package dispatcher

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pause"
)

const (
	// asideDoubts is after how many doubtful answers a job is set aside, if the engine worked for others meanwhile. Then it
	// is asked for rarely, and says nothing of the engine.
	asideDoubts = 3
	// asideMax is the longest pause before the engine is asked again for a job that is set aside.
	asideMax = 5 * time.Minute
	// askAgain is for how many jobs at once the engine is asked again beside the cycles.
	askAgain = 16
	// maxProbes is how many jobs an engine that cannot be used is tried with at the most, in turns, and dullProbe the number
	// of doubtful answers after which another takes the place of one.
	maxProbes = 8
	dullProbe = 20
)

// hold is a claimed job on its way to its engine. What changes is guarded by the lane's mu.
type hold struct {
	claim *sluice.Claim
	run   sluice.Run
	lease time.Duration
	asked time.Time // when its claim was asked for
	// renewed is when the lease began or was looked at: two thirds of it were left then at the least.
	renewed time.Time
	// fresh says that nobody asked an engine for its run so far. Until then the job can be handed back.
	fresh bool
	// begun says that the engine was about to be asked in the call that is under way, or was the last.
	begun bool
	// doubtful says that an engine was asked to start its run, and it is not known whether it did. From then on only a
	// clear answer ends it.
	doubtful bool
	doubts   int       // how many answers in a row were doubtful,
	doubtAt  time.Time // when the first was,
	askedAt  time.Time // and the last; zero: none was
	againAt  time.Time // when to ask again
	aside    bool      // the engine works for others
	asking   bool      // it is asked for beside the cycles
	// answer is what to write down, once it is known and could not be written yet.
	answer *sluice.Settlement
	// adopted tells of the job that the run was begun for, if it was another one; empty: it was not.
	adopted string
	// lost says why it is let go: somebody else has it, a person ended it, or only upkeep may decide on it; empty: it is not.
	lost string
}

// doubt notes that an answer says nothing.
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

// sure reports whether the lease of a claim holds for longer than a call may take: of the two thirds that were left a part.
func (h *hold) sure() bool { return pause.Since(h.renewed) <= h.lease/2 }

// unanswered says of what is held whether the engine is to be asked for it.
func unanswered(h *hold) bool { return h.answer == nil && h.lost == "" && !h.asking }

// fresh lists what no engine was asked for so far.
func (l *lane) fresh() []*hold {
	return l.holding(func(h *hold) bool { return unanswered(h) && h.fresh })
}

// stalled is how long until the engine may be asked for what it could not be just now, because of us; 0: at once. Until
// then no more is claimed.
func (l *lane) stalled(now time.Time) (wait time.Duration) {
	for _, h := range l.fresh() {
		wait = max(wait, h.againAt.Sub(now))
	}
	return wait
}

// doubtful lists what to ask the engine for again now, that which was not asked for the longest first.
func (l *lane) doubtful(now time.Time, aside bool) []*hold {
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

// probe chooses what to try an engine with that could not be used: what is held takes turns, because one job alone may be
// the trouble. Where none other is held, one more may be claimed.
func (l *lane) probe(now time.Time) (held []*hold, more bool) {
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

// letGo notes that what is held is no longer ours to decide on.
func (l *lane) letGo(why string, holds ...*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		if h.answer == nil && h.lost == "" {
			h.lost = why
		}
	}
}
