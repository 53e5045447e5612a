package postgres

import (
	"context"
	_ "embed"
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

//go:embed sql/limit_told.sql
var limitToldSQL string

//go:embed sql/limit_judge.sql
var limitJudgeSQL string

//go:embed sql/limit_pick.sql
var limitPickSQL string

//go:embed sql/limit_pick_tenants.sql
var limitPickTenantsSQL string

//go:embed sql/limit_claim.sql
var limitClaimFile string

var limitClaimSQL = jobColumns.In(limitClaimFile)

//go:embed sql/limit_key_take.sql
var limitKeyTakeSQL string

//go:embed sql/limit_lane_next.sql
var limitLaneNextSQL string

//go:embed sql/limit_key_close.sql
var limitKeyCloseSQL string

//go:embed sql/limit_key_uses.sql
var limitKeyUsesSQL string

//go:embed sql/limit_forget.sql
var limitForgetSQL string

const (
	// lanesWoken is at how many limit keys with parked jobs one claim looks.
	lanesWoken = 200
	// pickedAgain is how many jobs a claim finds at once after it has parked some.
	pickedAgain = 100
)

// keyedClaim is the part of a claim that is about limits per key and by cost.
type keyedClaim struct {
	names         []string
	concurrency   []int32
	rates, bursts []float64 // per second; the jobs that the buckets hold
	perKey        []bool
	byCost        []bool
	paced         bool          // one of them has a rate
	most          int           // no key ever has room for more jobs
	every         bool          // all jobs are judged, not only those with a limit key
	stopped       bool          // a limit by cost has no room for the next job
	wait          time.Duration // until it has; 0: when a job ends
	parked        int           // jobs that the claim has set aside
	more          bool          // more was told than one claim takes in
}

// addKeyed notes the limits of the queue that are per key or by cost.
func (g *gate) addKeyed() {
	for _, l := range g.shared {
		if !l.limit.PerKey && !l.limit.ByCost {
			continue
		}
		k, figures := &g.keyed, flow.KeyFigures(l.limit)
		k.names, k.concurrency = append(k.names, l.limit.Name), append(k.concurrency, int32(figures.Concurrency))
		k.perKey, k.byCost, k.every = append(k.perKey, l.limit.PerKey), append(k.byCost, l.limit.ByCost), k.every || !l.limit.PerKey
		rate, burst := 0.0, 0.0
		if k.most == 0 {
			k.most = maxMoved
		}
		if figures.Concurrency > 0 && l.limit.PerKey {
			k.most = min(k.most, figures.Concurrency)
		}
		if !figures.Rate.IsZero() {
			rate, burst, k.paced = figures.Rate.PerSecond(), float64(figures.Burst), true
			if l.limit.PerKey {
				k.most = min(k.most, int(burst))
			}
		}
		k.rates, k.bursts = append(k.rates, rate), append(k.bursts, burst)
	}
}

// letIn lets in the parked jobs of the queue whose limit keys have room, and returns the walk from the front if some came.
func (s *Store) letIn(ctx context.Context, tx *pipeline, g *gate, w walk, request sluice.ClaimRequest) (walk, error) {
	told, err := list(ctx, tx, pgx.RowTo[int], limitToldSQL, g.keyed.names, maxTenantChanges)
	if err != nil {
		return w, err
	}
	g.keyed.more = told[0] == maxTenantChanges
	_, _, came, err := g.judge(ctx, tx, request, nil, min(request.Limit, g.keyed.most))
	if err != nil || !came {
		return w, err
	}
	s.lowWater.disturb(w.queue)
	var from [10]place
	for i := range from {
		from[i] = front
	}
	w.dueAts, w.ids = arguments(from)
	w.untilFront = 0
	return w, nil
}

// judge decides which candidates the limits let in, and parks those whose limit keys have no room. It returns the parked ones, the
// first one at which a limit by cost stops the claim, and whether parked jobs came in: of each limit key, it looks at so many heads.
func (g *gate) judge(ctx context.Context, tx *pipeline, request sluice.ClaimRequest, candidates uuidArray, heads int) (unfit map[sluice.ID]bool, stop sluice.ID, came bool, err error) {
	k := &g.keyed
	if candidates == nil {
		candidates = uuidArray{}
	}
	rows, err := query(ctx, tx, limitJudgeSQL, request.Queue, k.names, k.concurrency, k.rates, k.bursts, g.shared[0].now, candidates, heads, lanesWoken, k.perKey, k.byCost, request.ClaimAhead)
	if err != nil {
		return nil, stop, false, err
	}
	unfit = make(map[sluice.ID]bool)
	var id pgtype.UUID
	var fits, parked, passes bool
	var wait *float64
	_, err = pgx.ForEachRow(rows, []any{&id, &fits, &parked, &passes, &wait}, func() error {
		came = came || fits && parked
		switch {
		case !fits && !parked:
			unfit[idOf(id)] = true
			k.parked++
		case !passes && !k.stopped:
			k.stopped, k.wait = true, time.Duration(orZero(wait)*float64(time.Second))
			stop = idOf(id)
		}
		return nil
	})
	return unfit, stop, came, err
}

// picked is a job that a claim has found and locked.
type picked struct {
	id    pgtype.UUID
	keyed bool
}

func scanPicked(row pgx.CollectableRow) (p picked, err error) {
	err = row.Scan(&p.id, &p.keyed)
	return p, err
}

// admit returns the found jobs that limits per key let in, and parks the others.
func (g *gate) admit(ctx context.Context, tx *pipeline, request sluice.ClaimRequest, found []picked) (uuidArray, error) {
	var candidates uuidArray
	for _, p := range found {
		if p.keyed || g.keyed.every {
			candidates = append(candidates, idOf(p.id))
		}
	}
	var unfit map[sluice.ID]bool
	var stop sluice.ID
	if len(candidates) > 0 {
		var err error
		if unfit, stop, _, err = g.judge(ctx, tx, request, candidates, 0); err != nil {
			return nil, err
		}
	}
	fit := make(uuidArray, 0, len(found))
	for _, p := range found {
		id := idOf(p.id)
		if id == stop && g.keyed.stopped {
			break
		}
		if !unfit[id] {
			fit = append(fit, id)
		}
	}
	return fit, nil
}

// claimAdmitted claims jobs that are locked and let in, in the order of claims. It counts them against the rates of limits before
// the claim judges others.
func (s *Store) claimAdmitted(ctx context.Context, tx *pipeline, g *gate, request sluice.ClaimRequest, fit uuidArray, near []string) ([]*sluice.Claim, error) {
	if len(fit) == 0 {
		return nil, nil
	}
	jobs, err := list(ctx, tx, claimScanner(request), limitClaimSQL, request.Queue, fit, [16]byte(request.Token), request.Holder, request.Lease, g.at, near)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, inClaimOrder)
	if jobs, err = s.existing(ctx, tx, request, jobs); err == nil {
		g.takeKeys(tx, jobs)
	}
	return jobs, err
}

// claimKeyed claims up to limit jobs of a queue with limits per key.
func (s *Store) claimKeyed(ctx context.Context, tx *pipeline, g *gate, w walk, request sluice.ClaimRequest, limit int) (all []*sluice.Claim, err error) {
	order, dueAts, ids := w.inOrder(request.Priorities())
	for asked := limit; len(all) < limit && g.keyed.parked < maxMoved; asked = max(limit-len(all), pickedAgain) {
		parked := g.keyed.parked
		found, err := list(ctx, tx, scanPicked, limitPickSQL, request.Queue, order, dueAts, ids, asked, request.ClaimAhead, request.Engine)
		if err != nil {
			return nil, err
		}
		fit, err := g.admit(ctx, tx, request, found)
		if err != nil {
			return nil, err
		}
		jobs, err := s.claimAdmitted(ctx, tx, g, request, fit[:min(len(fit), limit-len(all))], []string{})
		if err != nil {
			return nil, err
		}
		all = append(all, jobs...)
		if len(found) < asked || g.keyed.parked == parked || g.keyed.stopped {
			break
		}
	}
	return all, nil
}

// take claims jobs from tenant queues. Where limits are per key, it finds them first, and parks those that must wait.
func (v contextual) take(lines []*flow.TenantQueue, tenants []string, shares, waiting []int32, dueAts []time.Time, ids uuidArray, order []int16) ([]*sluice.Claim, error) {
	r, near := v.request, nearLimit(lines)
	if len(v.gate.keyed.names) > 0 {
		found, err := list(v.ctx, v.tx, scanPicked, limitPickTenantsSQL, r.Queue, tenants, shares, waiting, dueAts, ids, order, r.ClaimAhead)
		if err != nil {
			return nil, err
		}
		fit, err := v.gate.admit(v.ctx, v.tx, r, found)
		if err != nil {
			return nil, err
		}
		return v.store.claimAdmitted(v.ctx, v.tx, v.gate, r, fit, near)
	}
	jobs, err := list(v.ctx, v.tx, claimScanner(r), tenantQueueClaimSQL, r.Queue, tenants, shares, waiting, dueAts, ids, order,
		[16]byte(r.Token), r.Holder, r.Lease, v.gate.at, r.ClaimAhead, near)
	if err != nil {
		return nil, err
	}
	return v.store.existing(v.ctx, v.tx, r, jobs)
}

// takeKeys counts claimed jobs against the rates of limits per key and by cost.
func (g *gate) takeKeys(tx *pipeline, jobs []*sluice.Claim) {
	k := &g.keyed
	type flowOf struct {
		limit int
		key   string
	}
	units := make(map[flowOf]int32)
	for i := range k.names {
		for _, j := range jobs {
			if k.rates[i] == 0 || k.perKey[i] && j.LimitKey == "" {
				continue
			}
			of, cost := flowOf{limit: i}, 1
			if k.perKey[i] {
				of.key = j.LimitKey
			}
			if k.byCost[i] {
				cost = max(j.Cost, 1)
			}
			units[of] += int32(cost)
		}
	}
	if len(units) == 0 {
		return
	}
	var names, keys []string
	var rates, bursts []float64
	var taken []int32
	for of, n := range units {
		names, keys, taken = append(names, k.names[of.limit]), append(keys, of.key), append(taken, n)
		rates, bursts = append(rates, k.rates[of.limit]), append(bursts, k.bursts[of.limit])
	}
	tx.queue(limitKeyTakeSQL, nil, names, rates, bursts, keys, taken, g.shared[0].now)
}

// untilLetIn returns how long until parked jobs of the queue may get in. Negative: none are parked.
func (g *gate) untilLetIn(ctx context.Context, tx *pipeline, queue string) (time.Duration, error) {
	if len(g.keyed.names) == 0 {
		return -1, nil
	}
	next, err := list(ctx, tx, pgx.RowTo[pgtype.Timestamptz], limitLaneNextSQL, queue, g.keyed.names)
	switch {
	case err != nil || !next[0].Valid:
		return -1, err
	case next[0].InfinityModifier != pgtype.Finite || g.keyed.parked >= maxMoved || g.keyed.more:
		return 0, nil
	}
	return max(next[0].Time.Sub(g.shared[0].now), 0), nil
}

// KeyUses says how much of a limit keys use.
func (s *Store) KeyUses(ctx context.Context, name string, keys []string, most int) ([]limit.KeyUse, error) {
	var out []limit.KeyUse
	err := s.call(ctx, "look at limit keys", func(ctx context.Context, _ bool) error {
		out = nil
		found, err := namedLimits(ctx, s.pool, []string{name})
		if err != nil || len(found) == 0 || !found[0].PerKey {
			return err
		}
		out, err = keyUses(ctx, s.pool, found[0], keys, most)
		return err
	})
	return out, err
}

func keyUses(ctx context.Context, db rowsQuerier, of limit.Limit, keys []string, most int) ([]limit.KeyUse, error) {
	return list(ctx, db, func(row pgx.CollectableRow) (limit.KeyUse, error) {
		var key string
		var state flow.Key
		var parked int
		var filledAt, closedUntil pgtype.Timestamptz
		var now time.Time
		err := row.Scan(&key, &state.InFlight, &parked, &state.Bucket.Tokens, &filledAt, &closedUntil, &now)
		state.Bucket.FilledAt, state.ClosedUntil = timeOf(filledAt), timeOf(closedUntil)
		use := flow.KeyUseOf(of, key, state, now)
		use.Waiting = parked
		return use, err
	}, limitKeyUsesSQL, of.Name, keys, most, limit.MaxFigure)
}

// CloseKey closes a key of a limit or opens it, and audits this. It shortens no close.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	entry := saving.KeyClosed(name, key, until, act)
	err := s.strike(ctx, "close limit key", audit.ObjectLimit, name, act, limitKeyCloseSQL, name, key, nullTime(until), act.By, act.Reason, nullUUID(act.ID), string(entry.Event), string(entry.After))
	if err == nil {
		s.signal(sluice.Signal{})
	}
	return err
}
