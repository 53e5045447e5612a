package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/audit"
)

//go:embed sql/audit_settled.sql
var auditSettledSQL string

//go:embed sql/audit_rows.sql
var auditRowsSQL string

//go:embed sql/audit_seals.sql
var auditSealsSQL string

//go:embed sql/audit_seal_last.sql
var auditSealLastSQL string

//go:embed sql/audit_batch.sql
var auditBatchSQL string

//go:embed sql/audit_seal_add.sql
var auditSealAddSQL string

//go:embed sql/audit_forget.sql
var auditForgetSQL string

var _ audit.Store = (*Store)(nil)

// settling finds the entry up to which the audit is complete. A transaction draws the numbers of its entries before
// it commits, and transactions commit in any order. Until its end, each holds a lock on the table. So the audit is
// complete up to a seen entry once all transactions have ended that held the lock when the entry was seen.
type settling struct {
	mu   sync.Mutex
	upto int64 // complete up to here
	// next becomes upto when the transactions in waits have ended.
	next  int64
	waits []string
}

type settledRow struct {
	Last    int64
	Now     time.Time
	Writers []string
	Waits   int64
}

// AuditSettled returns the number up to which the audit is complete, and the time by the server's clock.
func (s *Store) AuditSettled(ctx context.Context) (upto int64, now time.Time, err error) {
	s.settling.mu.Lock()
	defer s.settling.mu.Unlock()
	state := &s.settling
	var row settledRow
	err = s.call(ctx, "look at the audit", func(ctx context.Context, _ bool) error {
		rows, err := list(ctx, s.pool, pgx.RowToStructByName[settledRow], auditSettledSQL, append([]string{}, state.waits...))
		if err == nil {
			row = rows[0]
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	switch {
	case len(row.Writers) == 0:
		state.upto, state.next, state.waits = max(state.upto, row.Last), 0, nil
	case row.Waits == 0:
		state.upto = max(state.upto, state.next)
		state.next, state.waits = row.Last, row.Writers
	}
	return state.upto, row.Now, nil
}

// AuditDigests reads entries in the server's binary form, and decodes no column that is only digested.
func (s *Store) AuditDigests(ctx context.Context, after, upto int64, limit int) (digests []audit.Digest, err error) {
	err = s.call(ctx, "read the audit", func(ctx context.Context, _ bool) error {
		rows, err := s.pool.Query(ctx, auditRowsSQL, planEachTime, pgx.QueryResultFormats{pgx.BinaryFormatCode}, after, upto, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		digests = digests[:0]
		var d audit.Digester
		var row audit.Row
		for rows.Next() {
			if err := rawRow(&row, rows.RawValues()); err != nil {
				return err
			}
			digests = append(digests, d.Digest(&row))
		}
		return rows.Err()
	})
	return digests, err
}

// epoch is 2000-01-01, where the server's count of microseconds begins, in microseconds since 1970.
const epoch = 946_684_800_000_000

// rawRow reads the columns of audit_rows.sql in the server's binary form.
func rawRow(row *audit.Row, raw [][]byte) error {
	if len(raw) != 14 || len(raw[0]) != 8 || len(raw[1]) != 8 || len(raw[9]) != 4 {
		return fmt.Errorf("the server sends entries of the audit in another form than was asked for")
	}
	*row = audit.Row{
		Seq: int64(binary.BigEndian.Uint64(raw[0])), At: int64(binary.BigEndian.Uint64(raw[1])) + epoch,
		Actor: raw[2], Object: raw[3], Name: raw[4], Event: raw[5], From: raw[6], To: raw[7], Reason: raw[8],
		Generation: int64(int32(binary.BigEndian.Uint32(raw[9]))), JobID: raw[10], ActID: raw[11], Before: jsonText(raw[12]), After: jsonText(raw[13]),
	}
	return nil
}

// jsonText is the text of a jsonb in binary form, without the version byte before it.
func jsonText(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	return raw[1:]
}

func scanSeal(row pgx.CollectableRow) (s audit.Seal, err error) {
	var previous, notable, full, hash []byte
	var keepNotable, keepFull int64
	err = row.Scan(&s.No, &s.At, &s.Upto, &previous, &s.Notable.Entries, &notable, &s.Notable.Gone, &keepNotable, &s.Full.Entries, &full, &s.Full.Gone, &keepFull, &hash)
	copy(s.Previous[:], previous)
	copy(s.Notable.Hash[:], notable)
	copy(s.Full.Hash[:], full)
	copy(s.Hash[:], hash)
	s.At, s.Notable.Keep, s.Full.Keep = s.At.UTC(), time.Duration(keepNotable)*time.Millisecond, time.Duration(keepFull)*time.Millisecond
	return s, err
}

// LastAuditSeal returns the last seal.
func (s *Store) LastAuditSeal(ctx context.Context) (last audit.Seal, err error) {
	err = s.call(ctx, "read the last seal", func(ctx context.Context, _ bool) error {
		seals, err := list(ctx, s.pool, scanSeal, auditSealLastSQL)
		if err == nil && len(seals) > 0 {
			last = seals[0]
		}
		return err
	})
	return last, err
}

// AuditSeals lists seals.
func (s *Store) AuditSeals(ctx context.Context, from int64, limit int) (seals []audit.Seal, err error) {
	err = s.call(ctx, "list seals", func(ctx context.Context, _ bool) (err error) {
		seals, err = list(ctx, s.pool, scanSeal, auditSealsSQL, from, limit)
		return err
	})
	return seals, err
}

// AuditBatch returns one batch of a seal.
func (s *Store) AuditBatch(ctx context.Context, seal int64, level audit.Level) (body []byte, err error) {
	err = s.call(ctx, "read the batch of a seal", func(ctx context.Context, _ bool) error {
		bodies, err := list(ctx, s.pool, pgx.RowTo[[]byte], auditBatchSQL, seal, string(level))
		if err == nil && len(bodies) > 0 {
			body = bodies[0]
		}
		return err
	})
	return body, err
}

// AddAuditSeal adds a seal, and deletes the entries and batches that it records as deleted.
func (s *Store) AddAuditSeal(ctx context.Context, addition audit.Addition) (added bool, err error) {
	seal := &addition.Seal
	err = s.call(ctx, "seal the audit", func(ctx context.Context, again bool) error {
		if again {
			stored, err := list(ctx, s.pool, scanSeal, auditSealsSQL, seal.No, 1)
			if err != nil {
				return err
			}
			if added = len(stored) > 0 && stored[0].No == seal.No && stored[0].Hash == seal.Hash; added {
				return nil
			}
		}
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if added, err = addSeal(ctx, tx, &addition); err != nil || !added {
				return err
			}
			if err := noteEntries(ctx, tx, addition.Entries); err != nil {
				return err
			}
			for _, level := range audit.Levels() {
				if after, upto, any := addition.Goes(level); any {
					if err := exec(ctx, tx, auditForgetSQL, string(level), after, upto); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	return added && err == nil, err
}

func addSeal(ctx context.Context, tx pgx.Tx, addition *audit.Addition) (added bool, err error) {
	var levels []string
	var bodies [][]byte
	for _, level := range audit.Levels() {
		if body := addition.Batches[level]; body != nil {
			levels, bodies = append(levels, string(level)), append(bodies, bytes.Clone(body))
		}
	}
	seal := &addition.Seal
	numbers, err := list(ctx, tx, pgx.RowTo[int64], auditSealAddSQL, seal.No, seal.At, seal.Upto, seal.Previous[:],
		seal.Notable.Entries, seal.Notable.Hash[:], seal.Notable.Gone, seal.Notable.Keep.Milliseconds(),
		seal.Full.Entries, seal.Full.Hash[:], seal.Full.Gone, seal.Full.Keep.Milliseconds(), seal.Hash[:], levels, bodies)
	return len(numbers) > 0, err
}
