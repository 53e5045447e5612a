package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/follow"
)

//go:embed sql/held.sql
var heldSQL string

//go:embed sql/end.sql
var endSQL string

//go:embed sql/end_put.sql
var endPutSQL string

//go:embed sql/end_put_one.sql
var endPutOneSQL string

//go:embed sql/key_give_back.sql
var keyGiveBackSQL string

//go:embed sql/key_hand_on.sql
var keyHandOnSQL string

//go:embed sql/let_go.sql
var letGoSQL string

//go:embed sql/back.sql
var backSQL string

//go:embed sql/away.sql
var awaySQL string

//go:embed sql/attempt.sql
var attemptSQL string

//go:embed sql/standing.sql
var standingSQL string

// held is the live row of a job that is to be moved.
type held struct {
	seq        int64
	id         sluice.ID
	queue      string
	state      sluice.State
	token      sluice.Token
	generation int
	attempts   int
	recoveries int
	holder     string
	claimedAt  *int64
	leaseUntil *int64
	keyed      bool
	blockedBy  *int64
	batch      sluice.ID
}

func scanHeld(rows *sql.Rows) (held, error) {
	var h held
	var id, token, batch []byte
	var state string
	var holder *string
	err := rows.Scan(&h.seq, &id, &h.queue, &state, &token, &h.generation, &h.attempts, &h.recoveries, &holder, &h.claimedAt,
		&h.leaseUntil, &h.keyed, &h.blockedBy, &batch)
	h.id, h.token, h.batch, h.state, h.holder = idOf(id), tokenOf(token), idOf(batch), sluice.State(state), orZero(holder)
	return h, err
}

// heldRows reads the live rows of jobs.
func heldRows(tx runner, ids []sluice.ID) (map[sluice.ID]held, error) {
	rows, err := list(tx, scanHeld, heldSQL, idList(ids))
	if err != nil {
		return nil, err
	}
	out := make(map[sluice.ID]held, len(rows))
	for _, h := range rows {
		out[h.id] = h
	}
	return out, nil
}

// Settle records the outcome of claimed jobs.
func (s *Store) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	return follow.Apart(settlements, func(batch []sluice.Settlement) ([]error, error) { return s.settleBatch(ctx, batch) })
}

func (s *Store) settleBatch(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	var errs []error
	err := s.write(ctx, "settle", func(tx runner, _ bool) (err error) {
		errs, err = settle(tx, settlements)
		return err
	})
	if err == nil {
		s.tally.Settled(settlements, errs)
	}
	return errs, err
}

// settle moves jobs. Jobs that complete without a result are written together; all others one by
// one.
func settle(tx runner, settlements []sluice.Settlement) ([]error, error) {
	ids := make([]sluice.ID, len(settlements))
	for i, in := range settlements {
		ids[i] = in.ID
	}
	rows, err := heldRows(tx, ids)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(settlements))
	finish := newFinisher(tx)
	for i, in := range settlements {
		row, lives := rows[in.ID]
		move := sluice.MoveOf(in.Event)
		if !settles(in.Event) {
			errs[i] = fmt.Errorf("settle by %s: %w", in.Event, sluice.ErrNotAllowed)
			continue
		}
		if errs[i] = sluice.CheckResult("result", in.Result); errs[i] != nil {
			continue
		}
		if lives && in.Token.Proves(row.token) && move.Allows(row.state) {
			delete(rows, in.ID) // moved now; a second settlement of the job goes to reasonFor
			if err := moveHeld(tx, finish, row, in); err != nil {
				return nil, err
			}
			continue
		}
		if err := finish.flush(); err != nil {
			return nil, err
		}
		if errs[i], err = reasonFor(tx, in); err != nil {
			return nil, err
		}
	}
	return errs, finish.flush()
}

// settles reports whether a holder may settle a job by this event.
func settles(event sluice.Event) bool {
	switch event {
	case sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventDispatch, sluice.EventDoubt:
		return true
	}
	return false
}

func moveHeld(tx runner, finish *finisher, row held, in sluice.Settlement) error {
	act := sluice.Act{By: in.Holder, Reason: sluice.StoredText(in.Reason)}
	if act.By == "" {
		act.By = row.holder
	}
	text := sluice.StoredText(in.Error)
	switch in.Event {
	case sluice.EventComplete:
		return finish.add(row, ended{event: in.Event, act: act, result: in.Result})
	case sluice.EventBury:
		if in.Poison {
			if err := noteStray(tx, row); err != nil {
				return err
			}
			row.recoveries++
		} else if row.state != sluice.StateUncertain { // the outcome of an uncertain job is unknown, so it counts no attempt
			if err := noteAttempt(tx, &row, text, in.Stack); err != nil {
				return err
			}
		}
		return finish.add(row, ended{event: in.Event, act: act, failure: text})
	case sluice.EventRetry:
		if err := noteAttempt(tx, &row, text, in.Stack); err != nil {
			return err
		}
		return back(tx, row, in.Event, act, now()+in.Delay.Microseconds(), nullText(text))
	case sluice.EventRelease:
		var due any
		if in.Delay > 0 {
			due = now() + in.Delay.Microseconds()
		}
		return back(tx, row, in.Event, act, due, nullText(text))
	case sluice.EventRecover:
		row.recoveries++
		return back(tx, row, in.Event, act, nil, nullText(text))
	}
	move := sluice.MoveOf(in.Event)
	if _, err := tx.exec(awaySQL, row.seq, string(move.To), nullText(in.Ref), nullText(text), now()); err != nil {
		return err
	}
	return tellMove(tx, row, in.Event, act)
}

// noteAttempt counts and stores a failed attempt.
func noteAttempt(tx runner, row *held, failure, stack string) error {
	row.attempts++
	_, err := tx.exec(attemptSQL, row.seq, row.generation, row.attempts, row.claimedAt, now(), row.holder, failure, nullText(sluice.StoredText(stack)))
	return err
}

func back(tx runner, row held, event sluice.Event, act sluice.Act, due, failure any) error {
	releases := 0
	if event == sluice.EventRelease {
		releases = 1
	}
	if _, err := tx.exec(backSQL, row.seq, row.attempts, releases, row.recoveries, due, failure); err != nil {
		return err
	}
	tx.signal(sluice.Signal{Queue: row.queue})
	return tellMove(tx, row, event, act)
}

// ended is the event, act and outcome with which a job ends.
type ended struct {
	event   sluice.Event
	act     sluice.Act
	result  []byte
	failure string
}

// finisher ends jobs. Jobs that end without a result or error are collected and written together.
type finisher struct {
	tx    runner
	plain map[sluice.State][]int64 // by outcome
	gone  []int64
	gates map[string]gate // by queue; read once per batch
	count counting        // of the batches of the jobs

	awaited []int64 // ended jobs of queues whose jobs others wait for
	alone   bool    // the caller evaluates the waiting jobs
}

func newFinisher(tx runner) *finisher {
	return &finisher{tx: tx, plain: make(map[sluice.State][]int64), gates: make(map[string]gate)}
}

func (f *finisher) add(row held, e ended) error {
	outcome := sluice.MoveOf(e.event).To
	if e.event == sluice.EventComplete && len(e.result) == 0 {
		f.plain[outcome] = append(f.plain[outcome], row.seq)
	} else if _, err := f.tx.exec(endPutOneSQL, string(outcome), now(), row.seq, nullBytes(e.result), nullText(e.failure), row.attempts, row.recoveries); err != nil {
		return err
	}
	f.gone = append(f.gone, row.seq)
	f.count.add(row.batch, outcome, 1)
	f.tx.ended(row.id)
	if row.blockedBy != nil && *row.blockedBy == row.seq { // somebody may hold the job
		held, is, err := dropHold(f.tx, row.id)
		if err != nil {
			return err
		}
		if is {
			row.blockedBy = held.behind
		}
	}
	if err := f.tell(row, e); err != nil || !row.keyed {
		return err
	}
	return f.freeKey(row)
}

// tell audits the end of a job if needed, and notes that other jobs may wait for it.
func (f *finisher) tell(row held, e ended) error {
	queue, known := f.gates[row.queue]
	if !known {
		var err error
		if queue, err = gateOf(f.tx, row.queue); err != nil {
			return err
		}
		f.gates[row.queue] = queue
	}
	if queue.awaited {
		f.awaited = append(f.awaited, row.seq)
	}
	if !queue.auditFull && !e.event.Notable() && e.act.ID.IsZero() { // acts of people are always audited
		return nil
	}
	return tell(f.tx, moveEntry(row.id, row.queue, row.generation, e.event, row.state, e.act))
}

// freeKey frees the key of a job that ends, and unblocks the job behind it. If the job waited
// behind the running holder, that holder gets the key back.
func (f *finisher) freeKey(row held) error {
	if row.blockedBy != nil && *row.blockedBy != row.seq { // a job that waits for a run of its own has its own number here
		handedOn, err := affected(f.tx.exec(keyHandOnSQL, row.seq, *row.blockedBy))
		if err != nil || handedOn > 0 {
			return err
		}
	}
	if _, err := f.tx.exec(keyGiveBackSQL, row.seq); err != nil {
		return err
	}
	queues, err := list(f.tx, scanOne[string], letGoSQL, row.seq)
	for _, queue := range queues {
		f.tx.signal(sluice.Signal{Queue: queue})
	}
	return err
}

func (f *finisher) flush() error {
	if len(f.gone) == 0 {
		return nil
	}
	for outcome, seqs := range f.plain {
		if _, err := f.tx.exec(endPutSQL, string(outcome), now(), seqList(seqs)); err != nil {
			return err
		}
	}
	_, err := f.tx.exec(endSQL, seqList(f.gone))
	clear(f.plain)
	f.gone = nil
	if err == nil {
		err = f.count.put(f.tx)
	}
	if err != nil || f.alone || len(f.awaited) == 0 {
		return err
	}
	awaited := f.awaited
	f.awaited = nil
	return unblock(f.tx, awaited, nil)
}

// ending is a batch of jobs that end by an act, without a token.
type ending struct {
	event sluice.Event
	from  []sluice.State
	ids   []sluice.ID
	act   sluice.Act
}

// end ends the jobs of a batch that are in the right state, and returns them.
func end(tx runner, e ending) (map[sluice.ID]held, error) {
	rows, err := heldRows(tx, e.ids)
	if err != nil {
		return nil, err
	}
	finish := newFinisher(tx)
	for _, id := range e.ids {
		row, lives := rows[id]
		if !lives || !slices.Contains(e.from, row.state) {
			delete(rows, id)
			continue
		}
		if err := noteStray(tx, row); err != nil {
			return nil, err
		}
		if err := finish.add(row, ended{event: e.event, act: e.act}); err != nil {
			return nil, err
		}
		tx.moved(row.queue, "", e.event)
		if row.state == sluice.StateClaimed {
			tx.signal(sluice.Signal{Cancelled: id})
		}
	}
	return rows, finish.flush()
}

// standing is the state of a job.
type standing struct {
	id         sluice.ID
	seq        int64
	queue      string
	state      sluice.State
	generation int
	token      sluice.Token
	due        int64
	expires    *int64
}

// stand reads the state of a job. An unknown job has none.
func stand(tx runner, id sluice.ID) (standing, error) {
	rows, err := list(tx, func(rows *sql.Rows) (standing, error) {
		out := standing{id: id}
		var state string
		var token []byte
		err := rows.Scan(&out.seq, &out.queue, &state, &out.generation, &token, &out.due, &out.expires)
		out.state, out.token = sluice.State(state), tokenOf(token)
		return out, err
	}, standingSQL, id[:])
	if err != nil || len(rows) == 0 {
		return standing{id: id}, err
	}
	return rows[0], nil
}

// reasonFor returns the reason why a settlement moved nothing: it was applied before, the state
// machine has no such move, or the claim is lost.
func reasonFor(tx runner, in sluice.Settlement) (answer, err error) {
	at, err := stand(tx, in.ID)
	if err != nil {
		return nil, err
	}
	mine := at.state != "" && in.Token.Proves(at.token)
	switch {
	case mine && at.state == sluice.MoveOf(in.Event).To, in.InTx && (!mine || at.state.Finished()):
		return nil, nil
	case mine && !at.state.Finished() && at.state != sluice.StateQueued:
		return fmt.Errorf("%s from %s: %w", in.Event, at.state, sluice.ErrNotAllowed), nil
	}
	return sluice.ErrLost, tellLost(tx, at, string(in.Event), in.Holder)
}
