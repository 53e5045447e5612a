package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/limit"
)

var _ limit.Store = (*Store)(nil)

// sharedLimit is a limit that a queue shares, as its claims need it.
type sharedLimit struct {
	limit.Limit
	*pace
	figures sluice.Settings
}

// shared returns the limits that a queue shares. A limit that is not stored limits nothing.
func (s *Store) shared(settings sluice.Settings) (all []sharedLimit) {
	for _, name := range limit.Names(settings.Limits) {
		if of, known := s.named[name]; known {
			all = append(all, s.sharedOf(of))
		}
	}
	return all
}

func (s *Store) sharedOf(of limit.Limit) sharedLimit {
	if s.paces[of.Name] == nil {
		s.paces[of.Name] = &pace{}
	}
	return sharedLimit{of, s.paces[of.Name], flow.Figures(of)}
}

// roomOf returns how many jobs a limit lets a claim take.
func (s *Store) roomOf(of sharedLimit, most int, now time.Time) flow.Room {
	_, inFlight := s.inFlightOf(of.Name)
	return flow.NamedRoom(most, of.Limit, of.bucket.Filled(of.figures, now), &of.window, now, inFlight, 0)
}

// inFlightOf returns the queues that share a limit, and how many of their jobs are in flight.
func (s *Store) inFlightOf(name string) (queues []string, inFlight int) {
	for queue, q := range s.queues {
		if slices.Contains(limit.Names(q.Settings.Limits), name) && !sluice.IsGroup(queue) {
			queues = append(queues, queue)
			inFlight += s.backlog(queue).inFlight()
		}
	}
	slices.Sort(queues)
	return queues, inFlight
}

// Limits lists limits by name.
func (s *Store) Limits(ctx context.Context, names []string) ([]limit.Limit, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.limitsNamed(names), nil
}

func (s *Store) limitsNamed(names []string) []limit.Limit {
	return slices.DeleteFunc(byName(s.named, func(l limit.Limit) string { return l.Name }), func(l limit.Limit) bool {
		return names != nil && !slices.Contains(names, l.Name)
	})
}

// LimitUses says how much of limits is in use.
func (s *Store) LimitUses(ctx context.Context, names []string) ([]limit.Use, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now := s.now()
	var out []limit.Use
	for _, l := range s.limitsNamed(names) {
		of, use := s.sharedOf(l), limit.Use{Limit: l}
		use.Queues, use.InFlight = s.inFlightOf(l.Name)
		use.InFlight = min(use.InFlight, limit.MaxFigure)
		if l.ByCost {
			key := flow.KeyUseOf(l, "", s.keyOf(limit.Limit{Name: l.Name, ByCost: true}, ""), now)
			use.InFlight, use.Wait = key.InFlight, key.Wait
			out = append(out, use)
			continue
		}
		use.Wait = of.window.Wait(of.figures, of.bucket.Filled(of.figures, now), now)
		out = append(out, use)
	}
	return out, nil
}

// SaveLimit stores a limit.
func (s *Store) SaveLimit(ctx context.Context, of limit.Limit, act sluice.Act) (limit.Limit, error) {
	return save(ctx, s, saving.NamedLimits, of, act, in(s.named, of.Name).then(func(limit.Limit) { s.signal(sluice.Signal{}) }))
}

// DeleteLimit deletes a limit.
func (s *Store) DeleteLimit(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, audit.ObjectLimit, name, act, func() error {
		for _, q := range s.queues {
			if slices.Contains(limit.Names(q.Settings.Limits), name) {
				return sluice.ErrNotAllowed
			}
		}
		delete(s.paces, name)
		maps.DeleteFunc(s.limitKeys, func(of limitKey, _ *flow.Key) bool { return of.limit == name })
		return remove(s.named, name)
	})
}
