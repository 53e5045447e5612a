package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/limit"
)

var _ limit.Store = (*Store)(nil)

//go:embed sql/named_limits.sql
var namedLimitsSQL string

//go:embed sql/named_limit_save.sql
var namedLimitSaveSQL string

//go:embed sql/named_limit_delete.sql
var namedLimitDeleteSQL string

//go:embed sql/named_limit_queues.sql
var namedLimitQueuesSQL string

//go:embed sql/named_limit_in_flight.sql
var namedLimitInFlightSQL string

// sharedLimit is a limit that a queue shares. Its gate has the figures, the tokens and the window of the limit.
type sharedLimit struct {
	gate
	limit limit.Limit
}

// of returns a claim as one of the limit's flow.
func (l *sharedLimit) of(request sluice.ClaimRequest) sluice.ClaimRequest {
	request.Queue = flow.LimitKey(l.limit.Name)
	return request
}

// readShared reads the limits that the queue shares, and records when jobs of earlier claims began. A limit that is not
// stored limits nothing.
func (g *gate) readShared(tx runner, request sluice.ClaimRequest) (err error) {
	names := limit.Names(g.settings.Limits)
	if len(names) == 0 {
		return nil
	}
	if g.shared, err = sharedLimits(tx, names); err != nil {
		return err
	}
	for i := range g.shared {
		l := &g.shared[i]
		l.steady = g.steady
		if err := l.readWindow(tx, l.of(request)); err != nil {
			return err
		}
	}
	return nil
}

// sharedLimits reads limits by name. Nil names: every limit.
func sharedLimits(tx runner, names []string) ([]sharedLimit, error) {
	var given any
	if names != nil {
		text, err := json.Marshal(names)
		if err != nil {
			return nil, err
		}
		given = string(text)
	}
	return list(tx, scanShared, namedLimitsSQL, given)
}

func scanShared(rows *sql.Rows) (l sharedLimit, err error) {
	var rate float64
	var ratePer, changedAt int64
	var closedUntil, filledAt *int64
	var tokens sql.NullFloat64
	of := &l.limit
	err = rows.Scan(&of.Name, &of.Concurrency, &rate, &ratePer, &of.Burst, &of.Closed, &closedUntil, &of.Version, &changedAt, &of.ChangedBy, &of.Reason,
		&tokens, &filledAt, &of.PerKey, &of.ByCost)
	of.Rate, of.ClosedUntil, of.ChangedAt = sluice.StoredRate(rate, ratePer), timeOf(closedUntil), timeOf(&changedAt)
	l.settings, l.bucket = flow.Figures(*of), flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}
	return l, err
}

// room fills the bucket, and returns how many jobs the limit lets a claim take.
func (l *sharedLimit) room(tx runner, request sluice.ClaimRequest, at int64, ahead time.Duration) (flow.Room, error) {
	inFlight := []int{0}
	if l.limit.Concurrency > 0 {
		var err error
		if inFlight, err = list(tx, scanOne[int], namedLimitInFlightSQL, l.limit.Name, l.limit.Concurrency); err != nil {
			return flow.Room{}, err
		}
	}
	now := time.UnixMicro(at)
	if err := l.fill(tx, l.of(request).Queue, now); err != nil {
		return flow.Room{}, err
	}
	if l.limit.ClosedAt(now) {
		return flow.NamedRoom(request.Limit, l.limit, l.bucket, &l.window, now, inFlight[0], 0), nil
	}
	return flow.RoomWithin(request.Limit, l.settings, l.bucket, &l.window, time.UnixMicro(l.steady), inFlight[0], ahead), nil
}

// paced reports whether the queue has a rate, of its own or of a limit that it shares.
func (g *gate) paced() bool {
	return !g.settings.Rate.IsZero() || slices.ContainsFunc(g.shared, func(l sharedLimit) bool { return !l.settings.Rate.IsZero() })
}

// Limits lists limits by name.
func (s *Store) Limits(ctx context.Context, names []string) ([]limit.Limit, error) {
	var out []limit.Limit
	err := s.read(ctx, "list limits", func(tx runner) (err error) {
		out, err = namedLimits(tx, names)
		return err
	})
	return out, err
}

func namedLimits(tx runner, names []string) ([]limit.Limit, error) {
	found, err := sharedLimits(tx, names)
	if err != nil {
		return nil, err
	}
	out := make([]limit.Limit, len(found))
	for i := range found {
		out[i] = found[i].limit
	}
	return out, nil
}

// LimitUses says how much of limits is in use.
func (s *Store) LimitUses(ctx context.Context, names []string) ([]limit.Use, error) {
	var out []limit.Use
	err := s.read(ctx, "look at limits", func(tx runner) error {
		found, err := sharedLimits(tx, names)
		if err != nil {
			return err
		}
		out = make([]limit.Use, len(found))
		for i := range found {
			if out[i], err = found[i].use(tx, s.steady.at()); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// use says how much of a limit is in use.
func (l *sharedLimit) use(tx runner, steady int64) (use limit.Use, err error) {
	use.Limit = l.limit
	if use.Queues, err = list(tx, scanOne[string], namedLimitQueuesSQL, l.limit.Name); err != nil {
		return use, err
	}
	use.Queues = slices.DeleteFunc(use.Queues, sluice.IsGroup)
	inFlight, err := list(tx, scanOne[int], namedLimitInFlightSQL, l.limit.Name, limit.MaxFigure)
	if err != nil {
		return use, err
	}
	use.InFlight = min(inFlight[0], limit.MaxFigure)
	if l.limit.ByCost {
		return l.useByCost(tx, use)
	}
	if l.settings.Rate.IsZero() {
		return use, nil
	}
	within := time.UnixMicro(steady)
	err = readWindow(tx, &l.window, flow.LimitKey(l.limit.Name), flow.Since(l.settings, within))
	use.Wait = l.window.Wait(l.settings, l.bucket.Filled(l.settings, time.UnixMicro(now())), within)
	return use, err
}

// useByCost says how much of a limit by cost is in use.
func (l *sharedLimit) useByCost(tx runner, use limit.Use) (limit.Use, error) {
	state, err := keyState(tx, l.limit, "")
	if of := flow.KeyUseOf(l.limit, "", state, time.UnixMicro(now())); err == nil {
		use.InFlight = of.InFlight
		if !l.limit.PerKey {
			use.Wait = of.Wait
		}
	}
	return use, err
}

// SaveLimit stores a limit and its audit entry.
func (s *Store) SaveLimit(ctx context.Context, of limit.Limit, act sluice.Act) (limit.Limit, error) {
	return save(ctx, s, "save limit", saving.NamedLimits, of, act, home[limit.Limit]{
		stored: func(tx runner) ([]limit.Limit, error) { return namedLimits(tx, []string{of.Name}) },
		store: func(tx runner, next limit.Limit) error {
			rate, ratePer := next.Rate.Columns()
			_, err := tx.exec(namedLimitSaveSQL, next.Name, next.Concurrency, rate, ratePer, next.Burst, next.Closed, micros(next.ClosedUntil),
				next.Version, next.ChangedAt.UnixMicro(), next.ChangedBy, next.Reason, next.PerKey, next.ByCost)
			tx.signal(sluice.Signal{})
			return err
		},
	})
}

// DeleteLimit deletes a limit and what claims have left of its rate, and audits this.
func (s *Store) DeleteLimit(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, "delete limit", audit.ObjectLimit, name, act, func(tx runner) (int64, error) {
		queues, err := list(tx, scanOne[string], namedLimitQueuesSQL, name)
		if err != nil {
			return 0, err
		}
		gone, err := affected(tx.exec(namedLimitDeleteSQL, name))
		if err != nil || gone == 0 {
			return 0, err
		}
		if len(queues) > 0 {
			return 0, sluice.ErrNotAllowed
		}
		for _, sql := range []string{queueDeleteFlowSQL, queueDeletePermitSQL, queueDeleteStartedSQL} {
			if _, err := tx.exec(sql, flow.LimitKey(name)); err != nil {
				return 0, err
			}
		}
		_, err = tx.exec(limitKeysDeleteSQL, name)
		return gone, err
	})
}
