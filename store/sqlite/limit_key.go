package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
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

// keyed is the part of a claim that is about limits per key.
type keyed struct {
	limits []limit.Limit
	keys   map[string]*keyRoom
	parked int // jobs that the claim has set aside
}

// keyRoom is the room of a limit key in a claim.
type keyRoom struct {
	flow.Room
	states []flow.Key // by limit
	taken  int
}

// readKeyed lets in the parked jobs of the queue whose limit keys have room, unless the claim has none.
func (g *gate) readKeyed(tx runner, request sluice.ClaimRequest, room int, at int64) error {
	for i := range g.shared {
		if of := g.shared[i].limit; of.PerKey {
			g.keyed.limits = append(g.keyed.limits, of)
		}
	}
	if len(g.keyed.limits) == 0 || room == 0 {
		return nil
	}
	g.keyed.keys = make(map[string]*keyRoom)
	due, err := list(tx, scanOne[string], limitLanesDueSQL, request.Queue, at, lanesWoken)
	if err != nil {
		return err
	}
	for _, key := range due {
		room, err := g.roomOfKey(tx, key, at)
		if err != nil {
			return err
		}
		if err := g.letIn(tx, request, key, room, at); err != nil {
			return err
		}
	}
	return nil
}

// letIn lets in as many parked jobs of a limit key as there is room for.
func (g *gate) letIn(tx runner, request sluice.ClaimRequest, key string, room *keyRoom, at int64) error {
	if room.Jobs == 0 {
		_, err := tx.exec(limitLaneKeepSQL, request.Queue, key, room.wakes(at))
		return err
	}
	most := min(room.Jobs, request.Limit)
	came, err := affected(tx.exec(limitUnparkSQL, request.Queue, key, most))
	if err != nil || came == int64(most) {
		return err
	}
	_, err = tx.exec(limitLaneForgetSQL, request.Queue, key)
	return err
}

// wakes returns when a claim is to look again at a key without room.
func (r *keyRoom) wakes(at int64) int64 {
	wait := laneLook
	if !r.Full {
		wait = r.Wait
	}
	return at + max(wait.Microseconds(), 1)
}

// roomOfKey returns the room of a limit key, which it reads once.
func (g *gate) roomOfKey(tx runner, key string, at int64) (*keyRoom, error) {
	if room := g.keyed.keys[key]; room != nil {
		return room, nil
	}
	room := &keyRoom{Room: flow.Room{Jobs: limit.MaxFigure}}
	for _, of := range g.keyed.limits {
		state, err := keyState(tx, of, key)
		if err != nil {
			return nil, err
		}
		room.states = append(room.states, state)
		room.Room = room.Least(flow.KeyRoom(of, state, time.UnixMicro(at)))
	}
	g.keyed.keys[key] = room
	return room, nil
}

func keyState(tx runner, of limit.Limit, key string) (flow.Key, error) {
	states, err := list(tx, func(rows *sql.Rows) (k flow.Key, err error) {
		var tokens sql.NullFloat64
		var filledAt, closedUntil *int64
		err = rows.Scan(&k.InFlight, &tokens, &filledAt, &closedUntil)
		k.Bucket, k.ClosedUntil = flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}, timeOf(closedUntil)
		return k, err
	}, limitKeyStateSQL, of.Name, key, limit.MaxFigure)
	if err != nil {
		return flow.Key{}, err
	}
	return states[0], nil
}

// admit returns the jobs that the limits per key let the claim take, and sets the others aside.
func (g *gate) admit(tx runner, queue string, seqs []int64, at int64) (fit []int64, err error) {
	if len(g.keyed.limits) == 0 || len(seqs) == 0 {
		return seqs, nil
	}
	keys := make(map[int64]string)
	_, err = list(tx, func(rows *sql.Rows) (struct{}, error) {
		var seq int64
		var key string
		err := rows.Scan(&seq, &key)
		keys[seq] = key
		return struct{}{}, err
	}, limitKeysOfSQL, seqList(seqs))
	if err != nil {
		return nil, err
	}
	var parked []int64
	full := make(map[string]*keyRoom)
	for _, seq := range seqs {
		key := keys[seq]
		if key == "" {
			fit = append(fit, seq)
			continue
		}
		room, err := g.roomOfKey(tx, key, at)
		switch {
		case err != nil:
			return nil, err
		case room.taken == room.Jobs:
			parked, full[key] = append(parked, seq), room
		default:
			room.taken++
			fit = append(fit, seq)
		}
	}
	return fit, g.park(tx, queue, parked, full, at)
}

func (g *gate) park(tx runner, queue string, seqs []int64, full map[string]*keyRoom, at int64) error {
	if len(seqs) == 0 {
		return nil
	}
	g.keyed.parked += len(seqs)
	for key, room := range full {
		if _, err := tx.exec(limitLaneKeepSQL, queue, key, room.wakes(at)); err != nil {
			return err
		}
	}
	_, err := tx.exec(limitParkSQL, seqList(seqs))
	return err
}

// noteKeys counts the claimed jobs against the rates of their limit keys.
func (g *gate) noteKeys(tx runner, at int64) error {
	for key, room := range g.keyed.keys {
		if room.taken == 0 {
			continue
		}
		for i, of := range g.keyed.limits {
			if of.Rate.IsZero() {
				continue
			}
			left := room.states[i].Bucket.Filled(flow.KeyFigures(of), time.UnixMicro(at)).Take(room.taken)
			if _, err := tx.exec(limitKeyTakeSQL, of.Name, key, left.Tokens, left.FilledAt.UnixMicro(), flow.KeyIdle(of, left).UnixMicro()); err != nil {
				return err
			}
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

// CloseKey closes a key of a limit or opens it, and audits this.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	return s.write(ctx, "close limit key", func(tx runner, _ bool) error {
		found, err := namedLimits(tx, []string{name})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return sluice.ErrNotFound
		}
		if _, err := tx.exec(limitKeyCloseSQL, name, key, micros(until), now()); err != nil {
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
