package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
)

//go:embed sql/list_live.sql
var listLiveSQL string

//go:embed sql/list_done.sql
var listDoneSQL string

//go:embed sql/list_dead.sql
var listDeadSQL string

//go:embed sql/list_tenant.sql
var listTenantSQL string

//go:embed sql/list_key.sql
var listKeySQL string

//go:embed sql/list_floor.sql
var listFloorSQL string

// listPart is a statement that lists some of the jobs of a page.
type listPart struct {
	sql    string
	states []sluice.State
}

// listParts are the statements that list what a filter chooses. A key or a tenant leads to the jobs, whatever has become
// of them; otherwise unfinished and finished ones come from two tables.
func listParts(filter sluice.JobFilter) []listPart {
	unfinished, finished := sluice.SplitStates(filter.States)
	dead := history.OfDead(filter)
	switch {
	case filter.Key != "":
		return []listPart{{listKeySQL, slices.Concat(unfinished, finished)}}
	case filter.Tenant != "" && !dead:
		return []listPart{{listTenantSQL, slices.Concat(unfinished, finished)}}
	case dead:
		return []listPart{{listLiveSQL, unfinished}, {listDeadSQL, finished}}
	}
	return []listPart{{listLiveSQL, unfinished}, {listDoneSQL, finished}}
}

// Jobs lists jobs, the newest first.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	var labels *string
	if len(filter.Labels) > 0 {
		text, err := json.Marshal(filter.Labels)
		if err != nil {
			return sluice.Page{}, err
		}
		labels = nullText(string(text))
	}
	before, err := filter.EndOfPage()
	if err != nil {
		return sluice.Page{}, err
	}
	var found []sluice.Job
	var floor sluice.ID
	err = s.call(ctx, "list jobs", func(ctx context.Context, _ bool) error {
		return s.pipelined(ctx, func(tx *pipeline) (err error) {
			found = nil
			if filter.Key != "" || filter.Tenant != "" {
				tx.queue(walkInOrderSQL, nil)
			}
			if floor, err = listFloor(ctx, tx, filter, before); err != nil {
				return err
			}
			for _, part := range listParts(filter) {
				if len(part.states) == 0 {
					continue
				}
				arguments := []any{
					filter.Queue, filter.Tenant, filter.Key, states(part.states), labels, nullUUID(before), filter.Limit + 1,
					filter.MinAttempts, filter.MinRecoveries,
				}
				if part.sql == listLiveSQL || part.sql == listDoneSQL {
					arguments = append(arguments, nullUUID(floor))
				}
				jobs, err := list(ctx, tx, scanJob, part.sql, arguments...)
				if err != nil {
					return err
				}
				found = append(found, jobs...)
			}
			return nil
		})
	})
	if err != nil {
		return sluice.Page{}, err
	}
	return sluice.NewestPage(found, filter.Limit, floor), nil
}

// listFloor says at which job a page ends that has nothing but labels to go by, so that it takes no longer the longer the
// history is. Zero: it goes to the end.
func listFloor(ctx context.Context, tx *pipeline, filter sluice.JobFilter, before sluice.ID) (sluice.ID, error) {
	if !history.Bounded(filter) {
		return sluice.ID{}, nil
	}
	ends, err := list(ctx, tx, func(row pgx.CollectableRow) (sluice.ID, error) {
		var live, done pgtype.UUID
		err := row.Scan(&live, &done)
		floor := idOf(live)
		if other := idOf(done); bytes.Compare(other[:], floor[:]) > 0 {
			floor = other
		}
		return floor, err
	}, listFloorSQL, nullUUID(before), history.ListLimit)
	if err != nil {
		return sluice.ID{}, err
	}
	return ends[0], nil
}
