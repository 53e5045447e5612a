package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/claim_find.sql
var claimFindSQL string

//go:embed sql/claim.sql
var claimSQL string

//go:embed sql/claimed_before.sql
var claimedBeforeSQL string

//go:embed sql/next_due.sql
var nextDueSQL string

//go:embed sql/paused.sql
var pausedSQL string

//go:embed sql/renew.sql
var renewSQL string

//go:embed sql/checkpoint.sql
var checkpointSQL string

// found is a job that can be claimed.
type found struct {
	seq   int64
	claim *sluice.Claim
}

// Claim hands out jobs that are due.
func (s *Store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	out := sluice.Claimed{NextDue: -1}
	err := s.write(ctx, "claim", func(tx runner, again bool) (err error) {
		if again {
			if out.Jobs, err = claimedBefore(tx, request); err != nil || len(out.Jobs) > 0 {
				return err
			}
		}
		out, err = claim(tx, request)
		return err
	})
	return out, err
}

// gate is what a queue's settings say to a claim.
type gate struct{ paused, auditFull bool }

func gateOf(tx runner, queue string) (gate, error) {
	gates, err := list(tx, func(rows *sql.Rows) (gate, error) {
		var g gate
		err := rows.Scan(&g.paused, &g.auditFull)
		return g, err
	}, pausedSQL, queue)
	if err != nil || len(gates) == 0 {
		return gate{}, err
	}
	return gates[0], nil
}

func claim(tx runner, request sluice.ClaimRequest) (sluice.Claimed, error) {
	queue, err := gateOf(tx, request.Queue)
	if err != nil || queue.paused {
		return sluice.Claimed{NextDue: -1}, err
	}
	at := now()
	var out sluice.Claimed
	var seqs []int64
	for priority := 1; priority <= 10 && len(seqs) < request.Limit; priority++ {
		jobs, err := list(tx, findScanner(request, priority), claimFindSQL, request.Queue, priority, at, request.Limit-len(seqs))
		if err != nil {
			return sluice.Claimed{}, err
		}
		for _, j := range jobs {
			seqs = append(seqs, j.seq)
			out.Jobs = append(out.Jobs, j.claim)
		}
	}
	if len(seqs) == 0 {
		out.NextDue, err = nextDue(tx, request.Queue, at)
		return out, err
	}
	until := at + request.Lease.Microseconds()
	if _, err := tx.exec(claimSQL, request.Token[:], request.Holder, at, until, seqList(seqs)); err != nil {
		return sluice.Claimed{}, err
	}
	for _, c := range out.Jobs {
		c.ClaimedAt, c.LeaseUntil = time.UnixMicro(at).UTC(), time.UnixMicro(until).UTC()
		if queue.auditFull {
			if err := tell(tx, moveEntry(c.ID, c.Queue, c.Generation, sluice.EventClaim, sluice.StateQueued, sluice.Act{By: request.Holder})); err != nil {
				return sluice.Claimed{}, err
			}
		}
	}
	return out, nil
}

// findScanner reads the rows of claim_find.
func findScanner(request sluice.ClaimRequest, priority int) func(*sql.Rows) (found, error) {
	return func(rows *sql.Rows) (found, error) {
		var row claimRow
		err := rows.Scan(row.targets()...)
		if err != nil {
			return found{}, err
		}
		c, err := row.claim(request)
		c.Priority = priority
		return found{row.seq, c}, err
	}
}

// claimRow is a job as the claim statements give it.
type claimRow struct {
	job         sluice.Job
	seq, due    int64
	created     int64
	id          []byte
	payload     []byte
	checkpoint  []byte
	failure     *string
	key         *string
	labels      *string
	expires     *int64
	maxAttempts *int
}

func (r *claimRow) targets() []any {
	j := &r.job
	return []any{
		&r.seq, &r.id, &r.due, &j.Generation, &j.Attempts, &j.Releases, &j.Recoveries, &r.failure, &r.checkpoint, &j.Tenant,
		&r.expires, &r.key, &r.payload, &r.labels, &r.maxAttempts, &r.created,
	}
}

func (r *claimRow) claim(request sluice.ClaimRequest) (*sluice.Claim, error) {
	c := &sluice.Claim{Job: r.job, Token: request.Token}
	c.ID, c.Queue, c.State, c.Holder = idOf(r.id), request.Queue, sluice.StateClaimed, request.Holder
	c.Key, c.Error, c.MaxAttempts = orZero(r.key), orZero(r.failure), orZero(r.maxAttempts)
	c.DueAt, c.CreatedAt, c.ExpiresAt = timeOf(&r.due), timeOf(&r.created), timeOf(r.expires)
	c.Payload, c.Checkpoint = r.payload, r.checkpoint
	var err error
	c.Labels, err = labelsOf(r.labels)
	return c, err
}

// claimedBefore finds what an earlier try of the same claim got.
func claimedBefore(tx runner, request sluice.ClaimRequest) ([]*sluice.Claim, error) {
	return list(tx, func(rows *sql.Rows) (*sluice.Claim, error) {
		var row claimRow
		var claimedAt, leaseUntil int64
		if err := rows.Scan(append(row.targets(), &row.job.Priority, &claimedAt, &leaseUntil)...); err != nil {
			return nil, err
		}
		c, err := row.claim(request)
		c.ClaimedAt, c.LeaseUntil = timeOf(&claimedAt), timeOf(&leaseUntil)
		return c, err
	}, claimedBeforeSQL, request.Token[:])
}

func nextDue(tx runner, queue string, at int64) (time.Duration, error) {
	next := time.Duration(-1)
	for priority := 1; priority <= 10; priority++ {
		due, err := list(tx, scanOne[int64], nextDueSQL, queue, priority, at)
		if err != nil {
			return -1, err
		}
		if len(due) == 0 {
			continue
		}
		if wait := time.Duration(max(due[0]-at, 0)) * time.Microsecond; next < 0 || wait < next {
			next = wait
		}
	}
	return next, nil
}

// Renew gives claims more time.
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
		at := now()
		for _, r := range renewals {
			row, lives := rows[r.ID]
			switch {
			case !lives || row.state != sluice.StateClaimed || row.token != r.Token:
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

// SaveCheckpoint keeps how far a claimed job has come.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
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
