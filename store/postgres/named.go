package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/limit"
)

var _ limit.Store = (*Store)(nil)

//go:embed sql/named_limits.sql
var namedLimitsSQL string

//go:embed sql/named_limit_lock.sql
var namedLimitLockSQL string

//go:embed sql/named_limit_read.sql
var namedLimitReadSQL string

//go:embed sql/named_limit_flow.sql
var namedLimitFlowSQL string

//go:embed sql/named_limit_save.sql
var namedLimitSaveSQL string

//go:embed sql/named_limit_queues.sql
var namedLimitQueuesSQL string

//go:embed sql/named_limit_in_flight.sql
var namedLimitInFlightSQL string

//go:embed sql/named_limit_delete.sql
var namedLimitDeleteSQL string

// sharedLimit is a limit that a queue shares, locked for a claim. Its gate has the figures, the tokens and the window of
// the limit.
type sharedLimit struct {
	gate
	limit limit.Limit
}

// of returns a claim as one of the limit's flow.
func (l *sharedLimit) of(request sluice.ClaimRequest) sluice.ClaimRequest {
	request.Queue = flow.LimitKey(l.limit.Name)
	return request
}

// readShared locks the limits that the queue shares, and records when jobs of earlier claims began. A limit that is not
// stored limits nothing. Claims that wait for the lock are at most one for each queue, because each holds the lock of its
// queue.
func (g *gate) readShared(ctx context.Context, tx *pipeline, s *Store, request sluice.ClaimRequest) error {
	names := limit.Names(g.settings.Limits)
	if len(names) == 0 {
		return nil
	}
	asked := time.Now()
	locked, err := lockShared(ctx, tx, names)
	if err != nil {
		return err
	}
	g.shared = locked
	for _, l := range locked {
		l.reading.Asked, l.reading.Answered = asked, time.Now()
		if err := l.readWindow(ctx, tx, s, l.of(request)); err != nil {
			return err
		}
	}
	return nil
}

// sharedWait is how long a claim waits for the lock of a limit. The process that holds the lock may be frozen, and the
// worker has other queues to claim from.
const (
	sharedWait    = time.Second
	sharedWaitSQL = "select set_config('lock_timeout', '1s', true)"
)

// lockShared locks and reads limits. A new limit gets its row of flow first.
func lockShared(ctx context.Context, tx *pipeline, names []string) ([]*sharedLimit, error) {
	tx.queue(sharedWaitSQL, nil)
	tx.queue(namedLimitLockSQL, nil, names)
	locked, err := list(ctx, tx, scanShared, namedLimitReadSQL, names)
	if err != nil || len(locked) == len(names) {
		return locked, err
	}
	// Another claim may make the rows at this moment; then the statement waits for that claim and makes none.
	tx.queue(namedLimitFlowSQL, nil, names)
	tx.queue(namedLimitLockSQL, nil, names)
	return list(ctx, tx, scanShared, namedLimitReadSQL, names)
}

func scanShared(row pgx.CollectableRow) (*sharedLimit, error) {
	var l sharedLimit
	var rate float64
	var ratePer, ahead int64
	var closedUntil, filledAt, claimedAt, permitsFrom pgtype.Timestamptz
	of, g := &l.limit, &l.gate
	err := row.Scan(&of.Name, &of.Closed, &closedUntil, &rate, &ratePer, &of.Burst, &of.Concurrency, &g.version,
		&g.bucket.Tokens, &filledAt, &claimedAt, &g.now, &permitsFrom, &ahead, &of.PerKey, &of.ByCost)
	of.Rate, of.ClosedUntil = sluice.StoredRate(rate, ratePer), timeOf(closedUntil)
	g.settings, g.bucket.FilledAt, g.permitsFrom = flow.Figures(*of), timeOf(filledAt), timeOf(permitsFrom)
	g.reading = flow.Reading{StoreTime: g.now, Ahead: time.Duration(ahead) * time.Microsecond}
	g.stored, g.at = timeOf(claimedAt), g.now
	if next := g.stored.Add(time.Microsecond); next.After(g.at) {
		g.at = next // the clock was set back
	}
	g.count = counting{version: g.version, since: g.at}
	return &l, err
}

// sharedRoom returns the least of the queue's room and that of the limits that it shares.
func (g *gate) sharedRoom(ctx context.Context, tx *pipeline, room flow.Room, most int, ahead time.Duration) (flow.Room, error) {
	for _, l := range g.shared {
		inFlight := []int{0}
		if l.settings.Concurrency > 0 {
			var err error
			if inFlight, err = list(ctx, tx, pgx.RowTo[int], namedLimitInFlightSQL, l.limit.Name, l.limit.Concurrency); err != nil {
				return room, err
			}
		}
		room = room.Least(flow.NamedRoom(most, l.limit, l.bucket.Filled(l.settings, l.now), &l.window, l.now, inFlight[0], ahead))
	}
	return room, nil
}

// takeShared counts claimed jobs against the rates of the limits that the queue shares, and reports whether there is one.
func (g *gate) takeShared(tx *pipeline, request sluice.ClaimRequest, jobs int) (paced bool) {
	for _, l := range g.shared {
		if l.settings.Rate.IsZero() {
			continue
		}
		paced = true
		if jobs > 0 {
			l.bucket = l.bucket.Filled(l.settings, l.now).Take(jobs)
			l.takeFromWindow(tx, l.of(request), jobs)
		}
		if jobs > 0 || l.wasSet {
			l.keep(tx, flow.LimitKey(l.limit.Name))
		}
	}
	return paced
}

// Limits lists limits by name.
func (s *Store) Limits(ctx context.Context, names []string) ([]limit.Limit, error) {
	var out []limit.Limit
	err := s.call(ctx, "list limits", func(ctx context.Context, _ bool) (err error) {
		out, err = namedLimits(ctx, s.pool, names)
		return err
	})
	return out, err
}

func namedLimits(ctx context.Context, db rowsQuerier, names []string) ([]limit.Limit, error) {
	found, err := list(ctx, db, scanNamed, namedLimitsSQL, names)
	if err != nil {
		return nil, err
	}
	out := make([]limit.Limit, len(found))
	for i, l := range found {
		out[i] = l.limit
	}
	return out, nil
}

func scanNamed(row pgx.CollectableRow) (*sharedLimit, error) {
	var l sharedLimit
	var rate float64
	var ratePer int64
	var closedUntil, filledAt, permitsFrom pgtype.Timestamptz
	of := &l.limit
	err := row.Scan(&of.Name, &of.Concurrency, &rate, &ratePer, &of.Burst, &of.Closed, &closedUntil, &of.Version, &of.ChangedAt, &of.ChangedBy, &of.Reason,
		&l.bucket.Tokens, &filledAt, &permitsFrom, &l.now, &of.PerKey, &of.ByCost)
	of.Rate, of.ClosedUntil, of.ChangedAt = sluice.StoredRate(rate, ratePer), timeOf(closedUntil), of.ChangedAt.UTC()
	l.settings, l.bucket.FilledAt, l.permitsFrom = flow.Figures(*of), timeOf(filledAt), timeOf(permitsFrom)
	return &l, err
}

// LimitUses says how much of limits is in use.
func (s *Store) LimitUses(ctx context.Context, names []string) ([]limit.Use, error) {
	var out []limit.Use
	err := s.call(ctx, "look at limits", func(ctx context.Context, _ bool) error {
		found, err := list(ctx, s.pool, scanNamed, namedLimitsSQL, names)
		if err != nil {
			return err
		}
		out = make([]limit.Use, len(found))
		for i, l := range found {
			if out[i], err = l.use(ctx, s.pool); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// use says how much of a limit is in use.
func (l *sharedLimit) use(ctx context.Context, db rowsQuerier) (use limit.Use, err error) {
	use.Limit = l.limit
	if use.Queues, err = list(ctx, db, pgx.RowTo[string], namedLimitQueuesSQL, l.limit.Name); err != nil {
		return use, err
	}
	use.Queues = slices.DeleteFunc(use.Queues, sluice.IsGroup)
	inFlight, err := list(ctx, db, pgx.RowTo[int], namedLimitInFlightSQL, l.limit.Name, limit.MaxFigure)
	if err != nil {
		return use, err
	}
	use.InFlight = min(inFlight[0], limit.MaxFigure)
	if l.limit.ByCost && !l.limit.PerKey {
		uses, err := keyUses(ctx, db, l.limit, []string{""}, 1)
		if err == nil {
			use.Wait = uses[0].Wait
		}
		return use, err
	}
	if l.settings.Rate.IsZero() {
		return use, nil
	}
	key, since := flow.LimitKey(l.limit.Name), flow.Since(l.settings, l.now)
	err = readWindow(ctx, db, permitsLookSQL, &l.window, key, l.permitsFrom, since)
	use.Wait = l.window.Wait(l.settings, l.bucket.Filled(l.settings, l.now), l.now)
	return use, err
}

// SaveLimit stores a limit and its audit entry.
func (s *Store) SaveLimit(ctx context.Context, of limit.Limit, act sluice.Act) (limit.Limit, error) {
	saved, err := save(ctx, s, "save limit", saving.NamedLimits, of, act, home[limit.Limit]{
		stored: func(ctx context.Context, db rowsQuerier) ([]limit.Limit, error) {
			return namedLimits(ctx, db, []string{of.Name})
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *limit.Limit) (time.Time, error) {
			rate, ratePer := of.Rate.Columns()
			return savedRow(ctx, tx, namedLimitSaveSQL, of.Name, of.Concurrency, rate, ratePer, of.Burst, of.Closed, nullTime(of.ClosedUntil),
				of.Version, act.By, act.Reason, of.PerKey, of.ByCost)
		},
	})
	if err == nil {
		s.signal(sluice.Signal{})
	}
	return saved, err
}

// DeleteLimit deletes a limit and what claims have left of its rate, and audits this.
func (s *Store) DeleteLimit(ctx context.Context, name string, act sluice.Act) error {
	err := s.strike(ctx, "delete limit", audit.ObjectLimit, name, act, namedLimitDeleteSQL, name, act.By, act.Reason, nullUUID(act.ID))
	if !errors.Is(err, sluice.ErrNotFound) {
		return err
	}
	if found, lookErr := s.Limits(ctx, []string{name}); lookErr != nil || len(found) > 0 {
		return errors.Join(lookErr, sluice.ErrNotAllowed)
	}
	return err
}
