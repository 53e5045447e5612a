package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/follow"
)

//go:embed sql/end.sql
var endSQL string

//go:embed sql/end_act.sql
var endActSQL string

//go:embed sql/back.sql
var backSQL string

//go:embed sql/away.sql
var awaySQL string

//go:embed sql/standing.sql
var standingSQL string

//go:embed sql/tell_lost.sql
var tellLostSQL string

// letGo marks a row of key_free.sql: a job that may start now that another has ended. lookAgain marks an ended job for which a
// job waits that another transaction has locked.
const letGo, lookAgain = "let go", "look again"

// moved is a row of a statement that moves jobs: the job, its queue, and the state that it left.
type moved struct {
	id    sluice.ID
	queue string
	from  string
	event sluice.Event // if it differs from the act's event
}

func scanMoved(row pgx.CollectableRow) (moved, error) {
	var m moved
	var id pgtype.UUID
	err := row.Scan(&id, &m.queue, &m.from)
	m.id = idOf(id)
	return m, err
}

// Settle records the outcome of claimed jobs.
func (s *Store) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	return follow.Apart(settlements, func(batch []sluice.Settlement) ([]error, error) { return s.settleBatch(ctx, batch) })
}

func (s *Store) settleBatch(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs := make([]error, len(settlements))
	for _, group := range settleGroups(settlements, errs) {
		if err := s.settleGroup(ctx, settlements, group, errs); err != nil {
			return nil, err
		}
	}
	s.tally.Settled(settlements, errs)
	return errs, nil
}

// settleGroups groups settlements that one statement can write: of one event, with the same counting, sorted by id,
// each id once.
func settleGroups(settlements []sluice.Settlement, errs []error) [][]int {
	type key struct {
		event  sluice.Event
		poison bool
		round  int
	}
	var keys []key
	groups := make(map[key][]int)
	rounds := make(map[sluice.ID]int, len(settlements))
	for _, i := range sortedByID(len(settlements), func(i int) sluice.ID { return settlements[i].ID }) {
		in := &settlements[i]
		switch in.Event {
		case sluice.EventComplete, sluice.EventBury, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventDispatch, sluice.EventDoubt:
		default:
			errs[i] = fmt.Errorf("settle by %s: %w", in.Event, sluice.ErrNotAllowed)
			continue
		}
		if errs[i] = sluice.CheckResult("result", in.Result); errs[i] != nil {
			continue
		}
		k := key{in.Event, in.Poison, rounds[in.ID]}
		rounds[in.ID]++
		if len(groups[k]) == 0 {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], i)
	}
	out := make([][]int, len(keys))
	for n, k := range keys {
		out[n] = groups[k]
	}
	return out
}

func (s *Store) settleGroup(ctx context.Context, settlements []sluice.Settlement, group []int, errs []error) error {
	return s.call(ctx, "settle", func(ctx context.Context, _ bool) error {
		out, err := settle(ctx, s.pool, settlements, group)
		if err != nil {
			return err
		}
		s.signalMoved(settlements[group[0]].Event, out.rows)
		s.signalEndedInTx(settlements, group)
		s.unblock(ctx, out.awaited)
		done := movedIDs(out.rows)
		var missed []int
		for _, i := range group {
			if !done[settlements[i].ID] {
				missed = append(missed, i)
			}
		}
		return s.explain(ctx, settlements, missed, errs)
	})
}

func movedIDs(rows []moved) map[sluice.ID]bool {
	done := make(map[sluice.ID]bool, len(rows))
	for _, m := range rows {
		if m.from != letGo {
			done[m.id] = true
		}
	}
	return done
}

// settle runs the statement of a group's event.
func settle(ctx context.Context, db rowsQuerier, settlements []sluice.Settlement, group []int) (out endings, err error) {
	event := settlements[group[0]].Event
	switch event {
	case sluice.EventComplete, sluice.EventBury:
		return end(ctx, db, endingOf(event, settlements, group))
	case sluice.EventRetry, sluice.EventRelease, sluice.EventRecover:
		out.rows, err = back(ctx, db, returnOf(event, settlements, group))
	default:
		out.rows, err = away(ctx, db, event, settlements, group)
	}
	return out, err
}

// ending is a batch for end.sql. Slices that no job needs may stay empty, except tokens.
type ending struct {
	event   sluice.Event
	ids     []sluice.ID // sorted
	tokens  []sluice.Token
	results [][]byte
	errors  []*string
	stacks  []*string
	reasons []string
	actors  []string
	counts  string
	late    bool
	brief   bool // only the ids of the ended jobs are needed
}

func endingOf(event sluice.Event, settlements []sluice.Settlement, group []int) ending {
	e := ending{event: event, counts: "nothing", brief: true, ids: make([]sluice.ID, 0, len(group)), tokens: make([]sluice.Token, 0, len(group))}
	for _, i := range group {
		in := &settlements[i]
		e.ids, e.tokens = append(e.ids, in.ID), append(e.tokens, in.Token)
		e.results, e.reasons = append(e.results, in.Result), append(e.reasons, sluice.StoredText(in.Reason))
	}
	if !slices.ContainsFunc(e.results, func(result []byte) bool { return result != nil }) {
		e.results = nil
	}
	if event == sluice.EventComplete {
		// The job keeps the error of its last failed attempt, and its row names the holder.
		return e
	}
	e.counts = "attempt"
	if settlements[group[0]].Poison {
		e.counts = "recovery"
	}
	for _, i := range group {
		in := &settlements[i]
		e.errors = append(e.errors, nullText(sluice.StoredText(in.Error)))
		e.stacks = append(e.stacks, nullText(sluice.StoredText(in.Stack)))
		e.actors = append(e.actors, in.Holder)
	}
	return e
}

// endings is the result of an ending.
type endings struct {
	rows    []moved
	awaited []sluice.ID // ended jobs for which others may wait; the caller evaluates those after the commit
}

// end ends the jobs whose tokens match, and then frees their keys.
func end(ctx context.Context, db rowsQuerier, e ending) (endings, error) {
	move := sluice.MoveOf(e.event)
	rows, err := query(ctx, db, endSQL, uuids(e.ids), uuids(e.tokens), states(move.From), string(e.event), string(move.To),
		e.results, e.errors, e.stacks, unlessZero(e.reasons), e.actors, e.counts, e.late, e.event.Notable(), e.brief)
	if err != nil {
		return endings{}, err
	}
	return ended(ctx, db, rows, e.ids)
}

// actEnding is a batch for end_act.sql. Errors may stay empty.
type actEnding struct {
	event   sluice.Event
	from    []sluice.State // default: the states of the state machine's move
	ids     []sluice.ID    // sorted
	errors  []*string
	reasons []string
	actors  []string
	act     sluice.ID
}

// endByAct ends jobs by an act, and then frees their keys. If an ending job may wait behind another, db must be a
// transaction: otherwise another job could take the key in between.
func endByAct(ctx context.Context, db rowsQuerier, e actEnding) (endings, error) {
	move := sluice.MoveOf(e.event)
	if e.from == nil {
		e.from = move.From
	}
	rows, err := query(ctx, db, endActSQL, uuids(e.ids), states(e.from), string(e.event), string(move.To),
		e.errors, e.reasons, e.actors, nullUUID(e.act), e.event.Notable() || !e.act.IsZero())
	if err != nil {
		return endings{}, err
	}
	return ended(ctx, db, rows, e.ids)
}

// ended reads the jobs that a statement has ended, and frees their keys.
func ended(ctx context.Context, db rowsQuerier, rows pgx.Rows, ids []sluice.ID) (out endings, err error) {
	var keyed, blockers, selves []pgtype.UUID // selves waited for themselves: somebody may hold them
	var id, blockedBy pgtype.UUID
	var m moved
	var hadKey, awaited bool
	_, err = pgx.ForEachRow(rows, []any{&id, &m.queue, &m.from, &hadKey, &blockedBy, &awaited}, func() error {
		if !id.Valid {
			out.rows = movedAll(ids)
			return nil
		}
		if m.id = idOf(id); hadKey {
			keyed, blockers = append(keyed, id), append(blockers, blockedBy)
		}
		if blockedBy.Valid && blockedBy == id {
			selves = append(selves, id)
		}
		if awaited {
			out.awaited = append(out.awaited, m.id)
		}
		out.rows = append(out.rows, m)
		return nil
	})
	if err == nil && len(selves) > 0 {
		err = forgetHolds(ctx, db, selves, blockers)
	}
	if err != nil || len(keyed) == 0 {
		return out, err
	}
	free, locked, err := freeKeys(ctx, db, keyed, blockers)
	out.rows, out.awaited = append(out.rows, free...), append(out.awaited, locked...)
	return out, err
}

func movedAll(ids []sluice.ID) []moved {
	out := make([]moved, len(ids))
	for i, id := range ids {
		out[i].id = id
	}
	return out
}

func states(in []sluice.State) []string {
	out := make([]string, len(in))
	for i, state := range in {
		out[i] = string(state)
	}
	return out
}

// handBack is a batch for back.sql. Slices that no job needs stay empty.
type handBack struct {
	event   sluice.Event
	ids     []sluice.ID // sorted
	tokens  []sluice.Token
	delays  []*time.Duration
	errors  []*string
	stacks  []*string
	reasons []string
	actors  []string
	counts  string
	late    bool
}

// countedBy is the count of a job that grows when the job returns to its queue.
var countedBy = map[sluice.Event]string{sluice.EventRetry: "attempt", sluice.EventRelease: "release", sluice.EventRecover: "recovery"}

func returnOf(event sluice.Event, settlements []sluice.Settlement, group []int) handBack {
	b := handBack{event: event, counts: countedBy[event]}
	for _, i := range group {
		in := &settlements[i]
		delay := &in.Delay
		if event == sluice.EventRelease && in.Delay == 0 || event == sluice.EventRecover {
			delay = nil
		}
		b.ids = append(b.ids, in.ID)
		b.tokens = append(b.tokens, in.Token)
		b.delays = append(b.delays, delay)
		b.errors = append(b.errors, nullText(sluice.StoredText(in.Error)))
		b.stacks = append(b.stacks, nullText(sluice.StoredText(in.Stack)))
		b.reasons = append(b.reasons, sluice.StoredText(in.Reason))
		b.actors = append(b.actors, in.Holder)
	}
	return b
}

func back(ctx context.Context, db rowsQuerier, b handBack) ([]moved, error) {
	return list(ctx, db, scanMoved, backSQL, uuids(b.ids), uuids(b.tokens), states(sluice.MoveOf(b.event).From), string(b.event),
		b.delays, b.errors, b.stacks, b.reasons, b.actors, b.counts, b.late, b.event.Notable())
}

func away(ctx context.Context, db rowsQuerier, event sluice.Event, settlements []sluice.Settlement, group []int) ([]moved, error) {
	var ids, tokens uuidArray
	var refs, errors []*string
	var reasons, actors []string
	for _, i := range group {
		in := &settlements[i]
		ids, tokens = append(ids, in.ID), append(tokens, in.Token)
		refs, errors = append(refs, nullText(in.Ref)), append(errors, nullText(sluice.StoredText(in.Error)))
		reasons, actors = append(reasons, sluice.StoredText(in.Reason)), append(actors, in.Holder)
	}
	move := sluice.MoveOf(event)
	return list(ctx, db, scanMoved, awaySQL, ids, tokens, states(move.From), string(event), string(move.To),
		refs, errors, reasons, actors, event.Notable())
}

// standing is the state of a job.
type standing struct {
	id         sluice.ID
	queue      string
	state      sluice.State
	generation int
	token      sluice.Token
}

func scanStanding(row pgx.CollectableRow) (standing, error) {
	var out standing
	var id, token pgtype.UUID
	var state string
	err := row.Scan(&id, &out.queue, &state, &out.generation, &token)
	out.id, out.state, out.token = idOf(id), sluice.State(state), token.Bytes
	return out, err
}

func standings(ctx context.Context, db rowsQuerier, ids []sluice.ID) (map[sluice.ID]standing, error) {
	rows, err := list(ctx, db, scanStanding, standingSQL, uuids(ids))
	if err != nil {
		return nil, err
	}
	out := make(map[sluice.ID]standing, len(rows))
	for _, row := range rows {
		out[row.id] = row
	}
	return out, nil
}

// explain finds the reason why settlements moved nothing: they were applied before, the state machine has no such
// move, or the claim is lost.
func (s *Store) explain(ctx context.Context, settlements []sluice.Settlement, missed []int, errs []error) error {
	if len(missed) == 0 {
		return nil
	}
	ids := make([]sluice.ID, len(missed))
	for k, i := range missed {
		ids[k] = settlements[i].ID
	}
	at, err := standings(ctx, s.pool, ids)
	if err != nil {
		return err
	}
	var lost []lostWrite
	for _, i := range missed {
		in := &settlements[i]
		now, known := at[in.ID]
		mine := known && in.Token.Proves(now.token)
		switch {
		case mine && now.state == sluice.MoveOf(in.Event).To, in.InTx && !mine, in.InTx && now.state.Finished():
			errs[i] = nil
		case mine && !now.state.Finished() && now.state != sluice.StateQueued:
			errs[i] = fmt.Errorf("%s from %s: %w", in.Event, now.state, sluice.ErrNotAllowed)
		default:
			errs[i] = sluice.ErrLost
			lost = append(lost, lostWrite{id: in.ID, queue: now.queue, state: now.state, verb: string(in.Event), holder: in.Holder})
		}
	}
	return s.tellLost(ctx, lost)
}

// lostWrite is a write with an old token.
type lostWrite struct {
	id     sluice.ID
	queue  string
	state  sluice.State
	verb   string
	holder string
}

func (s *Store) tellLost(ctx context.Context, lost []lostWrite) error {
	if len(lost) == 0 {
		return nil
	}
	var ids uuidArray
	var queues, states, reasons, actors []string
	for _, l := range lost {
		ids, queues, states = append(ids, l.id), append(queues, l.queue), append(states, string(l.state))
		reasons, actors = append(reasons, "refused: "+l.verb), append(actors, l.holder)
	}
	return exec(ctx, s.pool, tellLostSQL, ids, queues, states, reasons, actors)
}
