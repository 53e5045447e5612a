package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/claim_find.sql
var claimFindSQL string

//go:embed sql/claim.sql
var claimSQL string

//go:embed sql/claimed.sql
var claimedFile string

var claimedSQL = jobColumns.In(claimedFile)

//go:embed sql/claimed_before.sql
var claimedBeforeSQL string

//go:embed sql/next_due.sql
var nextDueSQL string

//go:embed sql/gate.sql
var gateSQL string

//go:embed sql/in_flight.sql
var inFlightSQL string

//go:embed sql/flow_take.sql
var flowTakeSQL string

//go:embed sql/renew.sql
var renewSQL string

//go:embed sql/checkpoint.sql
var checkpointSQL string

// Claim hands out due jobs. The writer only marks them, because no other connection can write
// meanwhile; Claim reads the marked jobs afterwards.
func (s *Store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if err := request.Check(); err != nil {
		return sluice.Claimed{}, err
	}
	var taken taking
	counted := false // when the claim was sent before
	err := s.write(ctx, "claim", func(tx runner, again bool) (err error) {
		if again || request.Again {
			if taken.seqs, err = list(tx, scanOne[int64], claimedBeforeSQL, request.Token[:]); err != nil || len(taken.seqs) > 0 {
				taken.answer.Paced, counted = request.ReportsBegun, request.Again
				taken.readAt, taken.hold = time.Now(), flow.MaxAhead
				return err
			}
		}
		if len(request.Queues) > 0 {
			taken, err = claimTogether(tx, request, s.steady.at())
			return err
		}
		steady := s.steady.at()
		read := time.Now()
		taken, err = claim(tx, request, steady, s.ahead.Of(request))
		taken.readAt = read
		return err
	})
	if err != nil || len(taken.seqs) == 0 {
		s.ahead.Answer(&taken.answer, taken.readAt, 0)
		return taken.answer, err
	}
	taken.answer.Jobs, err = s.readClaims(ctx, request, taken.seqs)
	if err == nil && len(taken.answer.Jobs) < len(taken.seqs) {
		if s.dropOrphans(ctx, taken.seqs, request.Token[:], request.Holder) > 0 { // a row that stays is found again when its lease has ended
			taken.answer.NextDue = 0 // other jobs may wait behind the dropped ones
		}
	}
	s.tellLeases(taken.answer.Jobs)
	if !counted {
		s.tally.Claimed(taken.answer.Jobs)
	}
	s.ahead.Answer(&taken.answer, taken.readAt, taken.hold)
	return taken.answer, err
}

// readerPatience is how long a claim waits for a read connection: the caller's own queries may
// occupy all of them.
const readerPatience = time.Second

// readClaims reads claimed jobs beside the writer. If that fails, the writer reads them: otherwise
// the jobs would have no holder until their lease ends.
func (s *Store) readClaims(ctx context.Context, request sluice.ClaimRequest, seqs []int64) (jobs []*sluice.Claim, err error) {
	patient, cancel := context.WithTimeout(ctx, readerPatience)
	defer cancel()
	err = s.look(patient, func(tx runner) (err error) {
		jobs, err = claims(tx, request, seqs)
		return err
	})
	if err == nil {
		return jobs, nil
	}
	err = s.write(ctx, "claim", func(tx runner, _ bool) (err error) {
		jobs, err = claims(tx, request, seqs)
		return err
	})
	return jobs, err
}

// taking is the result of marking jobs: their numbers, and an answer still without jobs.
type taking struct {
	seqs   []int64
	answer sluice.Claimed
	readAt time.Time     // when this process had read the clock, by its own clock; zero: a claim from several queues, none with limits
	hold   time.Duration // how long after the claim's instant its jobs may start
}

// gate is the part of a queue's settings and state that decides a claim: its limits, rate and
// turns.
type gate struct {
	paused, auditFull bool
	awaited           bool            // jobs wait for jobs of this queue, or once did
	settings          sluice.Settings // only its limits
	bucket            flow.Bucket
	window            flow.Window
	byTenant          bool
	steady            int64 // time by the steady clock, which counts for leases and the rate's window
	mark              flow.LowWater
	inTenantQueue     bool // jobs wait in tenant queues
	engine            string
	shared            []sharedLimit
	keyed             keyed
	moreToMove        bool // more jobs wait to be moved into or out of tenant queues than one claim moves
}

func gateOf(tx runner, queue string) (gate, error) {
	gates, err := list(tx, func(rows *sql.Rows) (gate, error) {
		var g gate
		var tokens sql.NullFloat64
		var rate, tenantRate float64
		var ratePer, tenantRatePer int64
		var filledAt *int64
		err := rows.Scan(&g.paused, &g.auditFull, &g.awaited, &rate, &ratePer, &g.settings.Burst, &g.settings.Concurrency, &tokens, &filledAt,
			&g.settings.Fair, &g.settings.TenantConcurrency, &tenantRate, &tenantRatePer, &g.settings.TenantBurst, &g.byTenant,
			&g.mark.VirtualStart, &g.mark.Tenant, &g.inTenantQueue, &g.engine, &g.settings.Limits)
		g.settings.Rate, g.settings.TenantRate = sluice.StoredRate(rate, ratePer), sluice.StoredRate(tenantRate, tenantRatePer)
		g.bucket = flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}
		return g, err
	}, gateSQL, queue, now())
	if err != nil {
		return gate{}, err
	}
	if len(gates) > 0 {
		return gates[0], nil
	}
	awaited, err := list(tx, scanOne[bool], isAwaitedSQL, queue)
	if err != nil {
		return gate{}, err
	}
	return gate{awaited: awaited[0]}, nil
}

// room fills the bucket, and returns how many jobs the queue's limits let a claim take.
func (g *gate) room(tx runner, request sluice.ClaimRequest, at int64, ahead time.Duration) (flow.Room, error) {
	if !flow.Limited(g.settings) {
		return flow.Room{Jobs: request.Limit}, nil
	}
	inFlight := []int{0}
	if limit := g.settings.Concurrency; limit > 0 {
		var err error
		if inFlight, err = list(tx, scanOne[int], inFlightSQL, request.Queue, limit); err != nil {
			return flow.Room{}, err
		}
	}
	if err := g.fill(tx, request.Queue, time.UnixMicro(at)); err != nil {
		return flow.Room{}, err
	}
	room := flow.RoomWithin(request.Limit, g.settings, g.bucket, &g.window, time.UnixMicro(g.steady), inFlight[0], ahead)
	for i := range g.shared {
		of, err := g.shared[i].room(tx, request, at, ahead)
		if err != nil {
			return flow.Room{}, err
		}
		room = room.Least(of)
	}
	return room, nil
}

// untilFree returns how long until the queue's rate, and those of the limits that it shares, let this many jobs start.
func (g *gate) untilFree(jobs int) time.Duration {
	free := g.window.UntilFree(jobs, g.settings, g.bucket, time.UnixMicro(g.steady))
	for i := range g.shared {
		l := &g.shared[i]
		free = max(free, l.window.UntilFree(jobs, l.settings, l.bucket, time.UnixMicro(l.steady)))
	}
	return free
}

// claim marks jobs as claimed. Their leases begin at steady, an instant of the steady clock. The claim gives out places of a
// rate that become free within ahead.
func claim(tx runner, request sluice.ClaimRequest, steady int64, ahead time.Duration) (taking, error) {
	out := taking{answer: sluice.Claimed{NextDue: -1}}
	queue, err := gateOf(tx, request.Queue)
	if err == nil {
		err = request.CheckRunner(queue.engine)
	}
	if err != nil {
		return out, err
	}
	queue.steady = steady
	at := now()
	if err := errors.Join(queue.readWindow(tx, request), queue.readShared(tx, request)); err != nil || queue.paused || request.Limit == 0 {
		return out, err
	}
	room, err := queue.room(tx, request, at, ahead)
	if err != nil {
		return out, err
	}
	if err := queue.readKeyed(tx, request, room.Jobs, at); err != nil {
		return out, err
	}
	if out.seqs, err = queue.take(tx, request, room.Jobs, at); err != nil {
		return out, err
	}
	if queue.keyed.stopped != nil {
		room = *queue.keyed.stopped
		room.Jobs = len(out.seqs)
	}
	letIn := time.Duration(-1)
	if len(out.seqs) < request.Limit {
		if letIn, err = queue.untilLetIn(tx, request.Queue, at); err != nil {
			return out, err
		}
	}
	out.answer, err = room.Answer(len(out.seqs), request.Limit, func() (time.Duration, error) {
		due, err := queue.nextDue(tx, request, at, room.Jobs > 0)
		return sooner(due, letIn), err
	})
	if err != nil {
		return out, err
	}
	if queue.byTenant && !out.answer.Limited && len(out.seqs) < request.Limit {
		if out.answer.NextDue, out.answer.Full, err = queue.tenantQueuesNext(tx, request, at, room.Jobs > 0); err != nil {
			return out, err
		}
	}
	if letIn >= 0 && !out.answer.Limited {
		out.answer.Full, out.answer.NextDue = true, sooner(out.answer.NextDue, letIn)
	}
	out.answer.Paced, out.hold = queue.paced(), queue.untilFree(len(out.seqs))
	return out, queue.note(tx, request, out.seqs, at)
}

// claimTogether claims from several queues, and skips queues that have limits.
func claimTogether(tx runner, request sluice.ClaimRequest, steady int64) (taking, error) {
	out := taking{answer: sluice.Claimed{NextDue: -1}}
	at := now()
	for _, q := range request.Queues {
		one := request.Of(q, request.Limit-len(out.seqs))
		if one.Limit <= 0 {
			continue
		}
		queue, err := gateOf(tx, q.Queue)
		if err != nil {
			return out, err
		}
		if queue.paused || queue.engine != "" || queue.byTenant || queue.inTenantQueue || flow.Limited(queue.settings) {
			continue
		}
		queue.steady = steady
		seqs, err := queue.take(tx, one, one.Limit, at)
		if err != nil {
			return out, err
		}
		if err := queue.note(tx, one, seqs, at); err != nil {
			return out, err
		}
		out.seqs = append(out.seqs, seqs...)
	}
	return out, nil
}

// take claims up to limit jobs.
func (g *gate) take(tx runner, request sluice.ClaimRequest, limit int, at int64) ([]int64, error) {
	if g.byTenant {
		return g.serve(tx, request, limit, at)
	}
	if g.inTenantQueue {
		moved, err := affected(tx.exec(tenantQueueDissolveSQL, request.Queue, maxMoved))
		if err != nil {
			return nil, err
		}
		g.moreToMove = moved == maxMoved
	}
	var seqs []int64
	done := 0 // of them are claimed
	for _, priority := range request.Priorities() {
		for len(seqs) < limit && g.keyed.stopped == nil {
			asked, parked := limit-len(seqs), g.keyed.parked
			found, err := list(tx, scanOne[int64], claimFindSQL, request.Queue, priority, at, asked, at+request.ClaimAhead.Microseconds())
			if err != nil {
				return nil, err
			}
			fit, err := g.admit(tx, request.Queue, found, at)
			if err != nil {
				return nil, err
			}
			seqs = append(seqs, fit...)
			if len(found) < asked || g.keyed.parked == parked || g.keyed.parked >= maxMoved || g.keyed.stopped != nil {
				break
			}
			if err := g.claimSeqs(tx, request, at, seqs[done:]); err != nil { // so that the next search does not find them
				return nil, err
			}
			done = len(seqs)
		}
	}
	return seqs, g.claimSeqs(tx, request, at, seqs[done:])
}

// claimSeqs marks jobs as claimed.
func (g *gate) claimSeqs(tx runner, request sluice.ClaimRequest, at int64, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	_, err := tx.exec(claimSQL, request.Token[:], request.Holder, at, g.steady+request.Lease.Microseconds(), seqList(seqs))
	return err
}

// note stores the remaining tokens and the window of the queue's rate, and audits the claims if the
// queue asks for it.
func (g *gate) note(tx runner, request sluice.ClaimRequest, seqs []int64, at int64) error {
	if len(seqs) == 0 {
		return nil
	}
	if err := g.takeRate(tx, request, len(seqs)); err != nil {
		return err
	}
	for i := range g.shared {
		if err := g.shared[i].takeRate(tx, g.shared[i].of(request), len(seqs)); err != nil {
			return err
		}
	}
	if err := g.noteKeys(tx); err != nil || !g.auditFull {
		return err
	}
	jobs, err := claims(tx, request, seqs)
	if err != nil {
		return err
	}
	for _, c := range jobs {
		entry := moveEntry(c.ID, c.Queue, c.Generation, sluice.EventClaim, sluice.StateQueued, sluice.Act{By: request.Holder})
		entry.At = c.ClaimedAt
		if err := tell(tx, entry); err != nil {
			return err
		}
	}
	return nil
}

// claims reads claimed jobs, in the order of claims.
func claims(tx runner, request sluice.ClaimRequest, seqs []int64) ([]*sluice.Claim, error) {
	var row claimRow
	targets := row.targets() // all rows are scanned into the same variables, because there are many columns
	return list(tx, func(rows *sql.Rows) (*sluice.Claim, error) {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		return row.claim(request)
	}, claimedSQL, seqList(seqs), request.Token[:])
}

// nextDue returns how long until a claim may take a job of a queue: until the job is due, minus claim_ahead. Negative:
// no job waits.
func (g *gate) nextDue(tx runner, request sluice.ClaimRequest, at int64, served bool) (time.Duration, error) {
	if g.byTenant {
		wait, _, err := g.tenantQueuesNext(tx, request, at, served)
		return wait, err
	}
	if g.moreToMove {
		return 0, nil
	}
	next := time.Duration(-1)
	for priority := 1; priority <= 10; priority++ {
		due, err := list(tx, scanOne[int64], nextDueSQL, request.Queue, priority, at)
		if err != nil {
			return -1, err
		}
		if len(due) == 0 {
			continue
		}
		if wait := time.Duration(max(due[0]-at-request.ClaimAhead.Microseconds(), 0)) * time.Microsecond; next < 0 || wait < next {
			next = wait
		}
	}
	return next, nil
}

// Renew extends claims, and returns the lost ones.
func (s *Store) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	ids := make([]sluice.ID, len(renewals))
	for i, r := range renewals {
		ids[i] = r.ID
	}
	var lost []sluice.ID
	err := s.write(ctx, "renew", func(tx runner, _ bool) error {
		lost = nil
		rows, err := heldRows(tx, ids)
		if err != nil {
			return err
		}
		at := s.steady.at()
		for _, r := range renewals {
			row, lives := rows[r.ID]
			switch {
			case !lives || row.state != sluice.StateClaimed || !r.Token.Proves(row.token):
				lost = append(lost, r.ID)
			case orZero(row.leaseUntil) < at+r.Lease.Microseconds()*2/3:
				if _, err := tx.exec(renewSQL, row.seq, at+r.Lease.Microseconds()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return lost, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// SaveCheckpoint stores the progress of a claimed job.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	if err := sluice.CheckResult("checkpoint", checkpoint); err != nil {
		return fmt.Errorf("save checkpoint of job %s: %w", id, err)
	}
	saved := int64(0)
	err := s.write(ctx, "save checkpoint", func(tx runner, _ bool) (err error) {
		if saved, err = affected(tx.exec(checkpointSQL, id[:], token[:], []byte(checkpoint))); err != nil || saved > 0 {
			return err
		}
		return tellLost(tx, standing{id: id}, "checkpoint", "")
	})
	if err == nil && saved == 0 {
		err = sluice.ErrLost
	}
	return err
}
