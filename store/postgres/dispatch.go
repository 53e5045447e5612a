package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

//go:embed sql/intend.sql
var intendSQL string

//go:embed sql/dispatches.sql
var dispatchesFile string

var dispatchesSQL = jobColumns.In(dispatchesFile)

//go:embed sql/dispatches_look.sql
var dispatchesLookFile string

var dispatchesLookSQL = jobColumns.In(dispatchesLookFile)

// RecordIntent records the runs that a dispatcher is about to request from an engine.
func (s *Store) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	errs := make([]error, len(intents))
	for _, round := range intentRounds(intents, errs) {
		err := s.call(ctx, "intend", func(ctx context.Context, _ bool) error {
			return s.intend(ctx, intents, round, errs)
		})
		if err != nil {
			return nil, err
		}
	}
	return errs, nil
}

// intentRounds groups intents that one statement can write: sorted by id, each id once. Nearly all batches make one
// group.
func intentRounds(intents []engine.Intent, errs []error) [][]int {
	var rounds [][]int
	seen := make(map[sluice.ID]int, len(intents))
	for _, i := range sortedByID(len(intents), func(i int) sluice.ID { return intents[i].ID }) {
		if errs[i] = intents[i].Check(); errs[i] != nil {
			continue
		}
		round := seen[intents[i].ID]
		seen[intents[i].ID]++
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], i)
	}
	return rounds
}

func (s *Store) intend(ctx context.Context, intents []engine.Intent, round []int, errs []error) error {
	var ids, tokens uuidArray
	var refs, engines []string
	var leases []time.Duration
	for _, i := range round {
		in := &intents[i]
		ids, tokens, leases = append(ids, in.ID), append(tokens, in.Token), append(leases, in.Lease)
		refs, engines = append(refs, in.Ref), append(engines, in.Engine)
	}
	noted, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], intendSQL, ids, tokens, refs, engines, leases)
	if err != nil {
		return err
	}
	done := make(map[sluice.ID]bool, len(noted))
	for _, id := range noted {
		done[idOf(id)] = true
	}
	var missed []int
	for _, i := range round {
		if errs[i] = nil; !done[intents[i].ID] {
			missed = append(missed, i)
		}
	}
	return s.explainIntents(ctx, intents, missed, errs)
}

// explainIntents finds the reason why intents were not recorded: another run was intended before, or the claim is
// lost.
func (s *Store) explainIntents(ctx context.Context, intents []engine.Intent, missed []int, errs []error) error {
	if len(missed) == 0 {
		return nil
	}
	ids := make([]sluice.ID, len(missed))
	for k, i := range missed {
		ids[k] = intents[i].ID
	}
	at, err := standings(ctx, s.pool, ids)
	if err != nil {
		return err
	}
	var lost []lostWrite
	for _, i := range missed {
		in := &intents[i]
		now := at[in.ID]
		if now.state == sluice.StateClaimed && in.Token.Proves(now.token) {
			errs[i] = engine.OtherRun(*in)
			continue
		}
		errs[i] = sluice.ErrLost
		lost = append(lost, lostWrite{id: in.ID, queue: now.queue, state: now.state, verb: "intend"})
	}
	return s.tellLost(ctx, lost)
}

// Dispatches lists the jobs with an intended or open run at an engine.
func (s *Store) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	var ids uuidArray // nil: null
	if len(filter.IDs) > 0 {
		ids = uuids(filter.IDs)
	}
	var out []*sluice.Claim
	err := s.call(ctx, "list dispatches", func(ctx context.Context, _ bool) (err error) {
		statement := dispatchesSQL
		if filter.ReadOnly {
			statement = dispatchesLookSQL
		}
		out, err = list(ctx, s.pool, scanDispatch, statement, filter.Queue, ids, filter.Overdue, [16]byte(filter.After),
			cmp.Or(filter.Limit, engine.DispatchLimit))
		if err != nil || filter.ReadOnly {
			return err
		}
		var orphans []sluice.ID
		out, orphans = apart(out)
		return s.dropOrphans(ctx, s.pool, filter.Queue, orphans, sluice.Token{}, "sluice")
	})
	return out, err
}

func scanDispatch(row pgx.CollectableRow) (*sluice.Claim, error) {
	var token pgtype.UUID
	j, err := scanJobAnd(row, &token)
	return &sluice.Claim{Job: j, Token: token.Bytes}, err
}
