package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

//go:embed sql/intend.sql
var intendSQL string

//go:embed sql/dispatches.sql
var dispatchesFile string

var dispatchesSQL = jobColumns.In(dispatchesFile)

//go:embed sql/dispatches_overdue.sql
var dispatchesOverdueFile string

var dispatchesOverdueSQL = jobColumns.In(dispatchesOverdueFile)

//go:embed sql/dispatches_of.sql
var dispatchesOfFile string

var dispatchesOfSQL = jobColumns.In(dispatchesOfFile)

// RecordIntent records the runs that a dispatcher is about to request from an engine.
func (s *Store) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	errs := make([]error, len(intents))
	err := s.write(ctx, "intend", func(tx runner, _ bool) error {
		at := s.steady.at()
		for i, in := range intents {
			var err error
			if errs[i], err = intend(tx, in, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

func intend(tx runner, in engine.Intent, at int64) (answer, err error) {
	if err := in.Check(); err != nil {
		return err, nil
	}
	noted, err := affected(tx.exec(intendSQL, in.ID[:], in.Token[:], in.Ref, in.Engine, at+in.Lease.Microseconds()))
	if err != nil || noted > 0 {
		return nil, err
	}
	found, err := stand(tx, in.ID)
	if err != nil {
		return nil, err
	}
	if found.state == sluice.StateClaimed && in.Token.Proves(found.token) {
		return engine.OtherRun(in), nil
	}
	return sluice.ErrLost, tellLost(tx, found, "intend", "")
}

// Dispatches lists the jobs with an intended or open run at an engine.
func (s *Store) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	text := dispatchesSQL
	args := []any{filter.Queue, filter.After[:], cmp.Or(filter.Limit, engine.DispatchLimit)}
	switch {
	case len(filter.IDs) > 0:
		text, args = dispatchesOfSQL, append(args, s.steady.at(), idList(filter.IDs), filter.Overdue)
	case filter.Overdue:
		text, args = dispatchesOverdueSQL, append(args, s.steady.at())
	}
	var found []dispatch
	err := s.read(ctx, "list dispatches", func(tx runner) (err error) {
		found, err = list(tx, scanDispatch, text, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []*sluice.Claim
	var orphans []int64
	for _, d := range found {
		if d.orphan {
			orphans = append(orphans, d.seq)
			continue
		}
		out = append(out, d.claim)
	}
	if len(orphans) > 0 && !filter.ReadOnly {
		s.dropOrphans(ctx, orphans, nil, "sluice")
	}
	s.tellLeases(out)
	return out, nil
}

// dispatch is a job with a run. Orphan: its row in sluice_job was deleted by hand.
type dispatch struct {
	seq    int64
	claim  *sluice.Claim
	orphan bool
}

func scanDispatch(rows *sql.Rows) (dispatch, error) {
	var token []byte
	found, err := scanJobAnd(rows, &token)
	return dispatch{found.seq, &sluice.Claim{Job: found.job, Token: tokenOf(token)}, found.job.CreatedAt.UnixMicro() == 0}, err
}
