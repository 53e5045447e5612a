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

// planEachTime sends a statement without keeping its plan. All statements but the frequent ones in perJob use this
// mode. In a caller's transactions and pools, and behind a pooler in transaction mode, all do.
const planEachTime = pgx.QueryExecModeCacheDescribe

// query runs a statement of the store and returns its rows.
func query(ctx context.Context, db rowsQuerier, sql string, args ...any) (pgx.Rows, error) {
	mode := planEachTime
	if keepsPlans(db, sql) {
		mode = pgx.QueryExecModeCacheStatement
	}
	return db.Query(ctx, sql, append([]any{mode}, args...)...)
}

// exec runs a statement of the store and drops its rows.
func exec(ctx context.Context, db rowsQuerier, sql string, args ...any) error {
	rows, err := query(ctx, db, sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// list runs a statement of the store and collects its rows.
func list[T any](ctx context.Context, db rowsQuerier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := query(ctx, db, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// sortedByID returns the order in which every statement locks the rows of a batch, so that no two statements wait
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

// uuids makes an argument of ids or tokens.
func uuids[T ~[16]byte](in []T) uuidArray {
	out := make(uuidArray, len(in))
	for i, u := range in {
		out[i] = u
	}
	return out
}

// uuidArray is an argument of type uuid[]. Of a plain [][16]byte, the driver would copy every element twice.
type uuidArray [][16]byte

// Dimensions and the next two methods implement the driver's interface of an array.
func (a uuidArray) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(a)), LowerBound: 1}}
}

func (a uuidArray) Index(i int) any { return (*uuidArgument)(&a[i]) }
func (a uuidArray) IndexType() any  { return (*uuidArgument)(nil) }

type uuidArgument [16]byte

// UUIDValue implements the driver's interface of a UUID.
func (u *uuidArgument) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *u, Valid: true}, nil
}

// unlessZero returns a column of a batch, or nil if every value is zero. An empty array reads as null in every row,
// and costs nothing.
func unlessZero[T comparable](column []T) []T {
	var zero T
	for _, value := range column {
		if value != zero {
			return column
		}
	}
	return nil
}

// nullUUID makes an argument of an id. The zero id makes a null.
func nullUUID(id sluice.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }

// nullTime makes an argument of a time. The zero time makes a null.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// nullText makes an argument of a text. The empty text makes a null.
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

// idsOf reads an array of ids. Null makes none.
func idsOf(in []pgtype.UUID) []sluice.ID {
	var out []sluice.ID
	for _, id := range in {
		out = append(out, idOf(id))
	}
	return out
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
