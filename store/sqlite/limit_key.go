package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/limit"
)

//go:embed sql/limit_lanes_due.sql
var limitLanesDueSQL string

//go:embed sql/limit_lane_next.sql
var limitLaneNextSQL string

//go:embed sql/limit_lane_keep.sql
var limitLaneKeepSQL string

//go:embed sql/limit_lane_forget.sql
var limitLaneForgetSQL string

//go:embed sql/limit_lane_asleep.sql
var limitLaneAsleepSQL string

//go:embed sql/limit_park.sql
var limitParkSQL string

//go:embed sql/limit_unpark.sql
var limitUnparkSQL string

//go:embed sql/limit_keys_of.sql
var limitKeysOfSQL string

//go:embed sql/limit_key_state.sql
var limitKeyStateSQL string

//go:embed sql/limit_key_take.sql
var limitKeyTakeSQL string

//go:embed sql/limit_key_close.sql
var limitKeyCloseSQL string

//go:embed sql/limit_key_wake.sql
var limitKeyWakeSQL string

//go:embed sql/limit_keys_forget.sql
var limitKeysForgetSQL string

//go:embed sql/limit_keys_delete.sql
var limitKeysDeleteSQL string

//go:embed sql/limit_keys_listed.sql
var limitKeysListedSQL string

//go:embed sql/limit_key_parked.sql
var limitKeyParkedSQL string

// lanesWoken is how many limit keys with parked jobs one claim looks at.
const lanesWoken = 200

// laneLook is when a claim looks again at a limit key of which a job must end first, if no end wakes it.
const laneLook = 10 * time.Minute

// keyed is the part of a claim that is about limits per key and by cost.
type keyed struct {
	limits  []limit.Limit
	budgets map[budgetOf]*flow.Budget
	taken   map[budgetOf]bool
	refused map[string]refusal // by limit key
	upTo    int64              // jobs due until then are claimed
	parked  int                // jobs that the claim has set aside
	stopped *flow.Room         // a limit by cost has no room for the next job
}

// refusal is the first job of a limit key for which there is no room. Cheaper ones behind it must not overtake.
type refusal struct {
	first place
	room  flow.Room
}

// place is where a job stands among those of its limit key.
type place struct{ priority, due, seq int64 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.priority, other.priority), cmp.Compare(p.due, other.due), cmp.Compare(p.seq, other.seq))
}

// refuse notes that there is no room for a job, unless there is none for one before it.
func (k *keyed) refuse(key string, at place, room flow.Room) {
	if old, refused := k.refused[key]; !refused || at.compare(old.first) < 0 {
		k.refused[key] = refusal{at, room}
	}
}

// budgetOf names the budget of a limit, by its place, for a key. A limit that is not per key has the empty key.
type budgetOf struct {
	limit int
	key   string
}

// readKeyed lets in the parked jobs of the queue whose limit keys have room, unless the claim has none.
func (g *gate) readKeyed(tx runner, request sluice.ClaimRequest, room int, at int64) error {
	for i := range g.shared {
		if of := g.shared[i].limit; of.PerKey || of.ByCost {
			g.keyed.limits = append(g.keyed.limits, of)
		}
	}
	if len(g.keyed.limits) == 0 || room == 0 {
		return nil
	}
	g.keyed.upTo = at + request.ClaimAhead.Microseconds()
	g.keyed.budgets, g.keyed.taken, g.keyed.refused = make(map[budgetOf]*flow.Budget), make(map[budgetOf]bool), make(map[string]refusal)
	due, err := list(tx, scanOne[string], limitLanesDueSQL, request.Queue, at, lanesWoken)
	if err != nil {
		return err
	}
	for _, key := range due {
		if err := g.letIn(tx, request, key, at); err != nil {
			return err
		}
	}
	return nil
}

// letIn lets in the first parked jobs of a limit key, as many as the claim asks for at most. Those without room are parked again.
func (g *gate) letIn(tx runner, request sluice.ClaimRequest, key string, at int64) error {
	most := request.Limit
	for i, of := range g.keyed.limits {
		if !of.PerKey {
			continue
		}
		state, err := claimedState(tx, of, key, at)
		if err != nil {
			return err
		}
		room := flow.KeyRoom(of, state, time.UnixMicro(at))
		if room.Jobs == 0 {
			return g.keepLane(tx, request.Queue, key, room, at)
		}
		most, g.keyed.budgets[budgetOf{i, key}] = min(most, room.Jobs), flow.KeyBudget(of, state, time.UnixMicro(at))
	}
	came, err := affected(tx.exec(limitUnparkSQL, request.Queue, key, most, at))
	if err != nil || came == int64(most) {
		return err
	}
	_, err = tx.exec(limitLaneForgetSQL, request.Queue, key)
	return err
}

// keepLane notes when a claim is to look again at the parked jobs of a key without room.
func (g *gate) keepLane(tx runner, queue, key string, room flow.Room, at int64) error {
	costs := slices.ContainsFunc(g.keyed.limits, func(of limit.Limit) bool { return of.PerKey && of.ByCost })
	_, err := tx.exec(limitLaneKeepSQL, queue, key, wakes(room, at), at, costs)
	return err
}

// wakes returns when a claim is to look again at a key without room.
func wakes(room flow.Room, at int64) int64 {
	wait := laneLook
	if !room.Full {
		wait = room.Wait
	}
	return at + max(wait.Microseconds(), 1)
}

// asleep notes if jobs of a limit key wait for room already.
func (g *gate) asleep(tx runner, queue, key string, at int64) error {
	_, err := list(tx, func(rows *sql.Rows) (p place, err error) {
		var until int64
		if err = rows.Scan(&until, &p.priority, &p.due, &p.seq); err == nil {
			g.keyed.refuse(key, p, flow.Room{Wait: time.Duration(until-at) * time.Microsecond})
		}
		return p, err
	}, limitLaneAsleepSQL, queue, key, at, g.keyed.upTo)
	return err
}

// budget returns the budget of a limit for a job, which it reads once. Nil: the limit does not bound the job.
func (g *gate) budget(tx runner, queue string, i int, key string, at int64) (budgetOf, *flow.Budget, error) {
	of := budgetOf{limit: i}
	if g.keyed.limits[i].PerKey {
		if key == "" {
			return of, nil, nil
		}
		of.key = key
	}
	if g.keyed.budgets[of] == nil {
		if g.keyed.limits[i].PerKey && g.keyed.limits[i].ByCost {
			if err := g.asleep(tx, queue, key, at); err != nil {
				return of, nil, err
			}
		}
		state, err := claimedState(tx, g.keyed.limits[i], of.key, at)
		if err != nil {
			return of, nil, err
		}
		g.keyed.budgets[of] = flow.KeyBudget(g.keyed.limits[i], state, time.UnixMicro(at))
	}
	return of, g.keyed.budgets[of], nil
}

func keyState(tx runner, of limit.Limit, key string) (flow.Key, error) {
	states, err := list(tx, func(rows *sql.Rows) (k flow.Key, err error) {
		var tokens sql.NullFloat64
		var filledAt, closedUntil *int64
		err = rows.Scan(&k.InFlight, &tokens, &filledAt, &closedUntil)
		k.Bucket, k.ClosedUntil = flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}, timeOf(closedUntil)
		return k, err
	}, limitKeyStateSQL, of.Name, key, of.ByCost, limit.MaxFigure)
	if err != nil {
		return flow.Key{}, err
	}
	return states[0], nil
}

// claimedState is keyState for a claim. If the clock was set back, the bucket of the rate is filled from now on.
func claimedState(tx runner, of limit.Limit, key string, at int64) (flow.Key, error) {
	state, err := keyState(tx, of, key)
	if now := time.UnixMicro(at); err == nil && state.Rewind(of, now) {
		err = storeTokens(tx, of, key, state.Bucket)
	}
	return state, err
}

// storeTokens keeps what claims have left of the rate of a limit key.
func storeTokens(tx runner, of limit.Limit, key string, left flow.Bucket) error {
	_, err := tx.exec(limitKeyTakeSQL, of.Name, key, left.Tokens, left.FilledAt.UnixMicro(), flow.KeyIdle(of, left).UnixMicro())
	return err
}

// weighed is a found job with what limits per key and by cost ask for.
type weighed struct {
	place place
	job   sluice.Job // only LimitKey and Cost
}

// admit returns the jobs that the limits let the claim take. It sets aside those whose limit keys have no room, and stops at the first
// for which a limit by cost has none.
func (g *gate) admit(tx runner, queue string, seqs []int64, at int64) (fit []int64, err error) {
	if len(g.keyed.limits) == 0 || len(seqs) == 0 {
		return seqs, nil
	}
	found, err := list(tx, func(rows *sql.Rows) (w weighed, err error) {
		err = rows.Scan(&w.place.seq, &w.place.priority, &w.place.due, &w.job.LimitKey, &w.job.Cost)
		return w, err
	}, limitKeysOfSQL, seqList(seqs))
	if err != nil {
		return nil, err
	}
	bySeq := make(map[int64]weighed, len(found))
	for _, w := range found {
		bySeq[w.place.seq] = w
	}
	var parked []int64
	full := make(map[string]bool)
	for _, seq := range seqs {
		w := bySeq[seq]
		room, perKey, err := g.judge(tx, queue, &w, at)
		switch {
		case err != nil:
			return nil, err
		case room.Jobs > 0:
			fit = append(fit, seq)
		case perKey:
			g.keyed.refuse(w.job.LimitKey, w.place, room)
			parked, full[w.job.LimitKey] = append(parked, seq), true
		default:
			g.keyed.stopped = &room
			return fit, g.park(tx, queue, parked, full, at)
		}
	}
	return fit, g.park(tx, queue, parked, full, at)
}

// judge takes the units of a job from the limits, if each has room. Otherwise, it says for what to wait, and whether the limit is per key.
func (g *gate) judge(tx runner, queue string, w *weighed, at int64) (room flow.Room, perKey bool, err error) {
	all := make(map[budgetOf]*flow.Budget, len(g.keyed.limits))
	for _, perKey := range []bool{true, false} {
		for i, of := range g.keyed.limits {
			if of.PerKey != perKey {
				continue
			}
			name, budget, err := g.budget(tx, queue, i, w.job.LimitKey, at)
			if err != nil {
				return room, perKey, err
			}
			if budget == nil {
				continue
			}
			if before, refused := g.keyed.refused[w.job.LimitKey]; refused && perKey && of.ByCost && w.place.compare(before.first) > 0 {
				return before.room, perKey, nil
			}
			if room := budget.Room(&w.job); room.Jobs == 0 {
				return room, perKey, nil
			}
			all[name] = budget
		}
	}
	for name, budget := range all {
		budget.Take(&w.job)
		g.keyed.taken[name] = true
	}
	return flow.Room{Jobs: 1}, false, nil
}

func (g *gate) park(tx runner, queue string, seqs []int64, full map[string]bool, at int64) error {
	if len(seqs) == 0 {
		return nil
	}
	g.keyed.parked += len(seqs)
	if _, err := tx.exec(limitParkSQL, seqList(seqs)); err != nil {
		return err
	}
	for key := range full {
		if err := g.keepLane(tx, queue, key, g.keyed.refused[key].room, at); err != nil {
			return err
		}
	}
	return nil
}

// noteKeys keeps what claims have left of the rates.
func (g *gate) noteKeys(tx runner) error {
	for name := range g.keyed.taken {
		of := g.keyed.limits[name.limit]
		if of.Rate.IsZero() {
			continue
		}
		if err := storeTokens(tx, of, name.key, g.keyed.budgets[name].Bucket()); err != nil {
			return err
		}
	}
	return nil
}

// untilLetIn returns how long until parked jobs of a queue may get in. Negative: none are parked.
func (g *gate) untilLetIn(tx runner, queue string, at int64) (time.Duration, error) {
	if len(g.keyed.limits) == 0 {
		return -1, nil
	}
	next, err := list(tx, scanOne[*int64], limitLaneNextSQL, queue)
	switch {
	case err != nil || next[0] == nil:
		return -1, err
	case g.keyed.parked >= maxMoved:
		return 0, nil
	}
	return time.Duration(max(*next[0]-at, 0)) * time.Microsecond, nil
}

// sooner returns the shorter of two waits. A negative wait has no end.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// KeyUses says how much of a limit keys use.
func (s *Store) KeyUses(ctx context.Context, name string, keys []string, most int) ([]limit.KeyUse, error) {
	var out []limit.KeyUse
	err := s.read(ctx, "look at limit keys", func(tx runner) error {
		at := now()
		out = nil
		found, err := namedLimits(tx, []string{name})
		if err != nil || len(found) == 0 || !found[0].PerKey {
			return err
		}
		of := slices.Clone(keys)
		if keys == nil {
			if of, err = list(tx, scanOne[string], limitKeysListedSQL, name, at, most); err != nil {
				return err
			}
		}
		for _, key := range of {
			state, err := keyState(tx, found[0], key)
			if err != nil {
				return err
			}
			parked, err := list(tx, scanOne[int], limitKeyParkedSQL, name, key, limit.MaxFigure)
			if err != nil {
				return err
			}
			use := flow.KeyUseOf(found[0], key, state, time.UnixMicro(at))
			use.Waiting = parked[0]
			out = append(out, use)
		}
		return nil
	})
	return out, err
}

// CloseKey closes a key of a limit or opens it, and audits this. It shortens no close.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	return s.once(ctx, "close limit key", audit.ObjectLimit, name, act, func(tx runner) error {
		found, err := namedLimits(tx, []string{name})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return sluice.ErrNotFound
		}
		changed, err := affected(tx.exec(limitKeyCloseSQL, name, key, micros(until), now()))
		if err != nil || changed == 0 {
			return err
		}
		if _, err := tx.exec(limitKeyWakeSQL, key); err != nil {
			return err
		}
		tx.signal(sluice.Signal{})
		entry := saving.KeyClosed(name, key, until, act)
		entry.At = time.UnixMicro(now())
		return tell(tx, entry)
	})
}
