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
		if j := s.jobs[run.JobID]; j != nil && (!of.PerKey || j.LimitKey == key) && slices.Contains(queues, run.Queue) {
			state.InFlight += flow.UnitsOf(of, &j.Job)
		}
	}
	return state
}

// roomOfKey returns how many jobs of a limit key the limits of a queue let a claim take.
func (s *Store) roomOfKey(l *backlog, key string, now time.Time) flow.Room {
	room := flow.Room{Jobs: len(s.jobs)}
	for _, of := range l.keyed {
		if !of.PerKey {
			continue
		}
		room = room.Least(flow.KeyRoom(of.Limit, s.keyOf(of.Limit, key), now))
	}
	return room
}

// admits says whether the limits of a queue let a claim take a job: otherwise for what it has to wait, and whether for a limit key.
func (s *Store) admits(j *job, now time.Time) (room flow.Room, perKey bool) {
	l := s.backlog(j.Queue)
	for _, perKey := range []bool{true, false} {
		for _, of := range l.keyed {
			if of.PerKey != perKey || perKey && j.LimitKey == "" {
				continue
			}
			if perKey && of.ByCost && l.refused[j.LimitKey] { // a cheaper job must not overtake
				return flow.Room{}, true
			}
			room := flow.KeyBudget(of.Limit, s.keyOf(of.Limit, of.keyFor(j)), now).Room(flow.UnitsOf(of.Limit, &j.Job))
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
	s.backlog(j.Queue).refused[j.LimitKey] = true
	s.backlog(j.Queue).laneOf(j.LimitKey)[j.Priority].add(j.DueAt, j.ID)
}

// letIn lets in the parked jobs for whose limit keys there is room. One that has expired takes none.
func (s *Store) letIn(l *backlog, keyed []sharedLimit, now time.Time) {
	l.keyed, l.stopped, l.refused = keyed, nil, make(map[string]bool)
	for key, lane := range l.parked {
		room := s.roomOfKey(l, key, now).Jobs
		l.refused[key] = room == 0
		for priority := 1; priority < len(lane); priority++ {
			h := &lane[priority]
			for first, waits := h.first(); waits; first, waits = h.first() {
				j := s.jobs[first.id]
				fresh := j != nil && j.live && j.parked && j.Priority == priority && j.DueAt.Equal(first.at)
				if fresh && room == 0 {
					break
				}
				h.drop()
				if !fresh {
					continue
				}
				if !expired(j, later(now, j.DueAt)) {
					room--
				}
				s.unpark(j)
			}
		}
		if !slices.ContainsFunc(lane[:], func(h dueHeap) bool { return len(h) > 0 }) {
			delete(l.parked, key)
		}
	}
}

func (s *Store) unpark(j *job) {
	j.parked, j.BlockedBy = false, sluice.ID{}
	s.wait(j)
	s.signal(sluice.Signal{Queue: j.Queue})
}

// untilLetIn returns how long until a limit lets a parked job in. Negative: when a job ends.
func (s *Store) untilLetIn(l *backlog, now time.Time) time.Duration {
	wait := time.Duration(-1)
	for key := range l.parked {
		switch room := s.roomOfKey(l, key, now); {
		case room.Jobs > 0:
			return 0
		case room.Wait > 0:
			wait = sooner(wait, room.Wait)
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
			s.letIn(l, judging(s.shared(s.settings(queue))), now)
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

// CloseKey closes a key of a limit, or opens it.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	return s.once(ctx, audit.ObjectLimit, name, act, func() error {
		if _, known := s.named[name]; !known {
			return sluice.ErrNotFound
		}
		s.keep(name, key).ClosedUntil = until
		s.add(saving.KeyClosed(name, key, until, act))
		s.signal(sluice.Signal{})
		return nil
	})
}
