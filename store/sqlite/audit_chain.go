package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"time"

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

//go:embed sql/audit_batch_add.sql
var auditBatchAddSQL string

//go:embed sql/audit_forget.sql
var auditForgetSQL string

//go:embed sql/audit_forget_batch.sql
var auditForgetBatchSQL string

//go:embed sql/audit_forget_seals.sql
var auditForgetSealsSQL string

var _ audit.Store = (*Store)(nil)

// AuditSettled returns the number of the last entry, and the time by the store's clock. SQLite has
// one writer at a time, so entries appear in the order of their numbers.
func (s *Store) AuditSettled(ctx context.Context) (upto int64, at time.Time, err error) {
	err = s.read(ctx, "look at the audit", func(tx runner) error {
		last, err := list(tx, scanOne[int64], auditSettledSQL)
		if err == nil {
			upto = last[0]
		}
		return err
	})
	return upto, time.UnixMicro(now()).UTC(), err
}

// AuditDigests reads the digests of entries without formatting the entries.
func (s *Store) AuditDigests(ctx context.Context, after, upto int64, limit int) (digests []audit.Digest, err error) {
	err = s.read(ctx, "read the audit", func(tx runner) error {
		rows, err := tx.query(auditRowsSQL, after, upto, limit)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		digests = digests[:0]
		var d audit.Digester
		for rows.Next() {
			row, err := scanRow(rows)
			if err != nil {
				return err
			}
			digests = append(digests, d.Digest(&row))
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	return digests, err
}

func scanRow(rows *sql.Rows) (row audit.Row, err error) {
	var actor, object, name, event, from, to, reason, job, act, before, after sql.RawBytes
	err = rows.Scan(&row.Seq, &row.At, &actor, &object, &name, &event, &from, &to, &reason, &row.Generation, &job, &act, &before, &after)
	row.Actor, row.Object, row.Name, row.Event, row.From, row.To, row.Reason = actor, object, name, event, from, to, reason
	row.JobID, row.ActID, row.Before, row.After = job, act, before, after
	return row, err
}

func scanSeal(rows *sql.Rows) (s audit.Seal, err error) {
	var at, keepNotable, keepFull int64
	var previous, notable, full, hash []byte
	err = rows.Scan(&s.No, &at, &s.Upto, &previous, &s.Notable.Entries, &notable, &s.Notable.Gone, &keepNotable, &s.Full.Entries, &full, &s.Full.Gone, &keepFull, &hash)
	copy(s.Previous[:], previous)
	copy(s.Notable.Hash[:], notable)
	copy(s.Full.Hash[:], full)
	copy(s.Hash[:], hash)
	s.At = time.UnixMicro(at).UTC()
	s.Notable.Keep, s.Full.Keep = time.Duration(keepNotable)*time.Millisecond, time.Duration(keepFull)*time.Millisecond
	return s, err
}

// LastAuditSeal returns the last seal.
func (s *Store) LastAuditSeal(ctx context.Context) (last audit.Seal, err error) {
	err = s.read(ctx, "read the last seal", func(tx runner) error {
		seals, err := list(tx, scanSeal, auditSealLastSQL)
		if err == nil && len(seals) > 0 {
			last = seals[0]
		}
		return err
	})
	return last, err
}

// AuditSeals lists seals.
func (s *Store) AuditSeals(ctx context.Context, from int64, limit int) (seals []audit.Seal, err error) {
	err = s.read(ctx, "list seals", func(tx runner) (err error) {
		seals, err = list(tx, scanSeal, auditSealsSQL, from, limit)
		return err
	})
	return seals, err
}

// AuditBatch returns one batch of a seal.
func (s *Store) AuditBatch(ctx context.Context, seal int64, level audit.Level) (body []byte, err error) {
	err = s.read(ctx, "read the batch of a seal", func(tx runner) error {
		bodies, err := list(tx, scanOne[[]byte], auditBatchSQL, seal, string(level))
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
	err = s.write(ctx, "seal the audit", func(tx runner, again bool) error {
		if again {
			stored, err := list(tx, scanSeal, auditSealsSQL, seal.No, 1)
			if err != nil {
				return err
			}
			if added = len(stored) > 0 && stored[0].No == seal.No && stored[0].Hash == seal.Hash; added {
				return nil
			}
		}
		added, err = addSeal(tx, &addition)
		return err
	})
	return added && err == nil, err
}

func addSeal(tx runner, addition *audit.Addition) (added bool, err error) {
	seal := &addition.Seal
	result, err := tx.exec(auditSealAddSQL, seal.No, seal.At.UnixMicro(), seal.Upto, seal.Previous[:],
		seal.Notable.Entries, seal.Notable.Hash[:], seal.Notable.Gone, seal.Notable.Keep.Milliseconds(),
		seal.Full.Entries, seal.Full.Hash[:], seal.Full.Gone, seal.Full.Keep.Milliseconds(), seal.Hash[:])
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	for level, body := range addition.Batches {
		if _, err := tx.exec(auditBatchAddSQL, seal.No, string(level), body); err != nil {
			return false, err
		}
	}
	for _, entry := range addition.Entries {
		if err := tell(tx, entry); err != nil {
			return false, err
		}
	}
	for _, level := range audit.Levels() {
		after, upto, any := addition.Goes(level)
		if !any {
			continue
		}
		for _, text := range []string{auditForgetSQL, auditForgetBatchSQL} {
			if _, err := tx.exec(text, string(level), after, upto); err != nil {
				return false, err
			}
		}
	}
	_, err = tx.exec(auditForgetSealsSQL, seal.Needed())
	return err == nil, err
}
