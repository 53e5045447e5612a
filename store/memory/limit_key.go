package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/limit"
)

// limitKey names a key of a limit that is per key.
type limitKey struct{ limit, key string }

// judging returns the limits that are per key or by cost.
func judging(shared []sharedLimit) []sharedLimit {
	return slices.DeleteFunc(slices.Clone(shared), func(l sharedLimit) bool { return !l.PerKey && !l.ByCost })
}

// laneOf returns the parked jobs of a limit key.
func (l *backlog) laneOf(key string) *waiting {
	if l.parked[key] == nil {
		l.parked[key] = &waiting{}
	}
	return l.parked[key]
}

// keyOf returns the state of a key of a limit, or of all its jobs.
func (s *Store) keyOf(of limit.Limit, key string) (state flow.Key) {
	if kept := s.limitKeys[limitKey{of.Name, key}]; kept != nil {
		kept.Rewind(of, s.now())
		state = *kept
	}
	queues, _ := s.inFlightOf(of.Name)
	for _, queue := range queues {
		l := s.backlog(queue)
		for _, jobs := range []map[sluice.ID]*job{l.claimed, l.dispatched} {
			for _, j := range jobs {
				if !of.PerKey || j.LimitKey == key {
					state.InFlight += flow.UnitsOf(of, &j.Job)
				}
			}
		}
	}
	for _, run := range s.strays {
		if (!of.PerKey || run.limitKey == key) && slices.Contains(queues, run.Queue) {
			state.InFlight += flow.UnitsOf(of, &sluice.Job{Cost: run.cost})
		}
	}
	return state
}

// keyBudgets are what a claim may take of the limits per key of a queue, for one key.
type keyBudgets []*flow.Budget

func (s *Store) keyBudgets(l *backlog, key string, now time.Time) (all keyBudgets) {
	for _, of := range l.keyed {
		if of.PerKey {
			all = append(all, flow.KeyBudget(of.Limit, s.keyOf(of.Limit, key), now))
		}
	}
	return all
}

// room says whether all of the limits have room for a job.
func (k keyBudgets) room(j *job) flow.Room {
	room := flow.Room{Jobs: 1}
	for _, b := range k {
		room = room.Least(b.Room(&j.Job))
	}
	return room
}

func (k keyBudgets) take(j *job) {
	for _, b := range k {
		b.Take(&j.Job)
	}
}

// admits says whether the limits of a queue let a claim take a job: otherwise for what it has to wait, and whether for a limit key.
func (s *Store) admits(j *job, now time.Time) (room flow.Room, perKey bool) {
	l := s.backlog(j.Queue)
	for _, perKey := range []bool{true, false} {
		for _, of := range l.keyed {
			if of.PerKey != perKey || perKey && j.LimitKey == "" {
				continue
			}
			if perKey && of.ByCost && j.waitsBehind(l.refused[j.LimitKey]) { // a cheaper job must not overtake
				return flow.Room{}, true
			}
			room := flow.KeyBudget(of.Limit, s.keyOf(of.Limit, of.keyFor(j)), now).Room(&j.Job)
			if room.Jobs == 0 {
				return room, perKey
			}
		}
	}
	return flow.Room{Jobs: 1}, false
}

// keyFor returns the key under which a limit counts a job.
func (l sharedLimit) keyFor(j *job) string {
	if l.PerKey {
		return j.LimitKey
	}
	return ""
}

// takeFromKey counts a claimed job against the rates of limits per key and by cost.
func (s *Store) takeFromKey(j *job, now time.Time) {
	for _, of := range s.backlog(j.Queue).keyed {
		if of.PerKey && j.LimitKey == "" || of.Rate.IsZero() {
			continue
		}
		kept := s.keep(of.Name, of.keyFor(j))
		kept.Bucket = kept.Bucket.FilledAlone(flow.KeyFigures(of.Limit), now).Take(flow.UnitsOf(of.Limit, &j.Job))
	}
}

func (s *Store) keep(name, key string) *flow.Key {
	of := limitKey{name, key}
	if s.limitKeys[of] == nil {
		s.limitKeys[of] = &flow.Key{}
	}
	return s.limitKeys[of]
}

// park sets a job aside until a limit lets its limit key in.
func (s *Store) park(j *job) {
	j.parked, j.BlockedBy = true, j.ID
	l := s.backlog(j.Queue)
	if !j.waitsBehind(l.refused[j.LimitKey]) {
		l.refused[j.LimitKey] = j
	}
	l.laneOf(j.LimitKey)[j.Priority].add(j.DueAt, j.ID)
}

// waitsBehind says whether a job comes after another of its limit key. Nil: there is no other.
func (j *job) waitsBehind(other *job) bool {
	return other != nil && inClaimOrder(&j.Job, &other.Job) > 0
}

// letIn lets in the parked jobs for whose limit keys there is room. One that has expired, or is not due in a claim that takes fewer
// jobs ahead than the one that parked it, takes none.
func (s *Store) letIn(l *backlog, keyed []sharedLimit, now time.Time, ahead time.Duration) {
	l.keyed, l.stopped, l.refused = keyed, nil, make(map[string]*job)
	for key, lane := range l.parked {
		budgets := s.keyBudgets(l, key, now)
		for j := s.firstParked(lane); j != nil; j = s.firstParked(lane) {
			if !expired(j, later(now, j.DueAt)) && !j.DueAt.After(now.Add(ahead)) {
				if budgets.room(j).Jobs == 0 {
					l.refused[key] = j
					break
				}
				budgets.take(j)
			}
			lane[j.Priority].drop()
			s.unpark(j)
		}
		if l.refused[key] == nil {
			delete(l.parked, key)
		}
	}
}

// firstParked returns the first parked job of a lane, and forgets those before it that are not parked there any more. Nil: none is.
func (s *Store) firstParked(lane *waiting) *job {
	for priority := range lane {
		h := &lane[priority]
		for first, waits := h.first(); waits; first, waits = h.first() {
			j := s.jobs[first.id]
			if j != nil && j.live && j.parked && j.Priority == priority && j.DueAt.Equal(first.at) {
				return j
			}
			h.drop()
		}
	}
	return nil
}

func (s *Store) unpark(j *job) {
	j.parked, j.BlockedBy = false, sluice.ID{}
	s.wait(j)
	s.signal(sluice.Signal{Queue: j.Queue})
}

// untilLetIn returns how long until a limit lets a parked job in. Negative: when a job ends.
func (s *Store) untilLetIn(l *backlog, now time.Time) time.Duration {
	wait := time.Duration(-1)
	for key, lane := range l.parked {
		first := s.firstParked(lane)
		if first == nil {
			continue
		}
		switch room := s.keyBudgets(l, key, now).room(first); {
		case room.Jobs > 0:
			return 0
		case room.Wait > 0:
			wait = sooner(wait, room.Wait)
		}
		if !first.ExpiresAt.IsZero() { // from then on it keeps none behind it
			wait = sooner(wait, max(first.ExpiresAt.Sub(now), 0))
		}
	}
	return wait
}

// sooner returns the shorter of two waits. A negative wait has no end.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// repairParked lets in the parked jobs of queues that share no limit per key any more.
func (s *Store) repairParked() {
	now := s.now()
	for queue, l := range s.backlogs {
		if len(l.parked) > 0 {
			s.letIn(l, judging(s.shared(s.settings(queue))), now, 0)
		}
	}
}

// pruneLimitKeys forgets the keys about which there is nothing to say.
func (s *Store) pruneLimitKeys(now time.Time) {
	for of, kept := range s.limitKeys {
		l := s.named[of.limit]
		spent := !l.Rate.IsZero() && flow.KeyIdle(l, kept.Bucket).After(now)
		if !spent && !kept.ClosedUntil.After(now) {
			delete(s.limitKeys, of)
		}
	}
}

// KeyUses says how much of a limit keys use.
func (s *Store) KeyUses(ctx context.Context, name string, keys []string, most int) ([]limit.KeyUse, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	of, known := s.named[name]
	if !known || !of.PerKey {
		return nil, nil
	}
	now := s.now()
	queues, _ := s.inFlightOf(name)
	waiting := make(map[string]int)
	for _, queue := range queues {
		for _, j := range s.jobs {
			if j.live && j.parked && j.Queue == queue {
				waiting[j.LimitKey]++
			}
		}
	}
	if keys == nil {
		keys = s.keysOf(name, waiting, most)
	}
	out := make([]limit.KeyUse, len(keys))
	for i, key := range keys {
		state := s.keyOf(of, key)
		out[i] = flow.KeyUseOf(of, key, state, now)
		out[i].Waiting = waiting[key]
	}
	return out, nil
}

// keysOf lists the keys of a limit that are closed or have parked jobs, by name.
func (s *Store) keysOf(name string, waiting map[string]int, most int) (keys []string) {
	for key := range waiting {
		keys = append(keys, key)
	}
	for of, kept := range s.limitKeys {
		if of.limit == name && kept.ClosedUntil.After(s.now()) && waiting[of.key] == 0 {
			keys = append(keys, of.key)
		}
	}
	slices.SortFunc(keys, cmp.Compare)
	return keys[:min(len(keys), most)]
}

// CloseKey closes a key of a limit, or opens it. It shortens no close.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	return s.once(ctx, audit.ObjectLimit, name, act, func() error {
		if _, known := s.named[name]; !known {
			return sluice.ErrNotFound
		}
		kept := s.keep(name, key)
		if !until.IsZero() && !kept.ClosedUntil.Before(until) {
			return nil
		}
		kept.ClosedUntil = until
		s.add(saving.KeyClosed(name, key, until, act))
		s.signal(sluice.Signal{})
		return nil
	})
}
