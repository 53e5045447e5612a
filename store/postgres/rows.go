package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
)

// planEachTime sends a statement without keeping its plan. A plan that was made while a table was
// small reads all of it for ever after; planning costs a few hundredths of a millisecond per job
// in a batch of 100. It also works behind a pooler in transaction mode.
const planEachTime = pgx.QueryExecModeCacheDescribe

// query runs a statement of ours that gives rows.
func query(ctx context.Context, db rowsQuerier, sql string, args ...any) (pgx.Rows, error) {
	return db.Query(ctx, sql, append([]any{planEachTime}, args...)...)
}

// exec runs a statement of ours whose rows nobody needs.
func exec(ctx context.Context, db rowsQuerier, sql string, args ...any) error {
	rows, err := query(ctx, db, sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// list collects the rows of a statement of ours.
func list[T any](ctx context.Context, db rowsQuerier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := query(ctx, db, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// sortedByID gives the order of a batch in which every statement locks rows, so that no two wait
// for each other.
func sortedByID(n int, id func(i int) sluice.ID) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := id(a), id(b)
		return bytes.Compare(x[:], y[:])
	})
	return order
}

// uuids makes an argument of ids.
func uuids(ids []sluice.ID) [][16]byte {
	out := make([][16]byte, len(ids))
	for i, id := range ids {
		out[i] = id
	}
	return out
}

// nullUUID makes an argument of an id, with the zero id as null.
func nullUUID(id sluice.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }

// nullTime makes an argument of a time, with the zero time as null.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// nullText makes an argument of a text, with the empty one as null.
func nullText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOf(t pgtype.Timestamptz) time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time.UTC()
}

func idOf(u pgtype.UUID) sluice.ID { return u.Bytes }

func labelsOf(text []byte) (map[string]string, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var labels map[string]string
	err := json.Unmarshal(text, &labels)
	return labels, err
}
