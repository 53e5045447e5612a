package postgres

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/claim_together.sql
var claimTogetherFile string

var claimTogetherSQL = jobColumns.In(claimTogetherFile)

// claimedTogetherBeforeSQL is claimed_before.sql with the queue of each job.
var claimedTogetherBeforeSQL = strings.Replace(claimedBeforeSQL, "\nfrom ", ", l.queue\nfrom ", 1)

// claimTogether claims in one statement from several queues, and skips queues that have limits.
func (s *Store) claimTogether(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	out := sluice.Claimed{NextDue: -1}
	before := s.crowds.before(request)
	err := s.call(ctx, "claim", func(ctx context.Context, again bool) (err error) {
		if again || request.Again {
			out.Jobs, err = list(ctx, s.pool, togetherScanner(request), claimedTogetherBeforeSQL, [16]byte(request.Token))
			if err == nil {
				out.Jobs, err = s.existing(ctx, s.pool, request, out.Jobs)
			}
			if err != nil || len(out.Jobs) > 0 {
				return err
			}
		}
		out.Jobs, err = s.claimAlongAll(ctx, request)
		return err
	})
	if err == nil {
		s.tally.Claimed(out.Jobs)
		s.tellTaken(request, out.Jobs, before)
	}
	return out, err
}

// claimAlongAll walks through all queues of a request. Each queue records the time of the whole statement: the
// marks only compare walks from the front with walks from the marks.
func (s *Store) claimAlongAll(ctx context.Context, request sluice.ClaimRequest) ([]*sluice.Claim, error) {
	var names []string
	var limits []int32
	leases, dueAts := []time.Duration(nil), []time.Time(nil)
	var ids uuidArray
	var priorities []int16
	walks := make(map[string]walk, len(request.Queues))
	for _, q := range request.Queues {
		w := s.lowWater.walk(q.Queue, 0)
		walks[q.Queue] = w
		names, limits, leases = append(names, q.Queue), append(limits, int32(q.Limit)), append(leases, q.Lease)
		order, from, after := w.inOrder(request.Of(q, q.Limit).Priorities())
		priorities, dueAts, ids = append(priorities, order...), append(dueAts, from...), append(ids, after...)
	}
	begun := time.Now()
	jobs, err := list(ctx, s.pool, togetherScanner(request), claimTogetherSQL, names, limits, leases, dueAts, ids,
		request.Limit, [16]byte(request.Token), request.Holder, priorities)
	took := time.Since(begun)
	for _, w := range walks {
		w.lowWater.walked(w.key, took, w.untilFront == 0)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, inClaimOrder)
	if jobs, err = s.existing(ctx, s.pool, request, jobs); err != nil {
		return nil, err
	}
	got := make(map[string]int, len(walks))
	for _, j := range jobs {
		walks[j.Queue].advance([]*sluice.Claim{j})
		got[j.Queue]++
	}
	for _, q := range request.Queues {
		w := walks[q.Queue]
		w.lowWater.filled(w.key, len(jobs) == request.Limit || got[q.Queue] == q.Limit)
	}
	return jobs, nil
}

// togetherScanner is claimScanner for a statement that also returns the queue of each job.
func togetherScanner(request sluice.ClaimRequest) pgx.RowToFunc[*sluice.Claim] {
	var queue string
	scan := claimScanner(request, &queue)
	return func(row pgx.CollectableRow) (*sluice.Claim, error) {
		c, err := scan(row)
		if err == nil {
			c.Queue = queue
		}
		return c, err
	}
}
