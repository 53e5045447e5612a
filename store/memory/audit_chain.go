package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// chain is the seals of the audit and their batches.
type chain struct {
	seals   []audit.Seal
	batches map[batchOf][]byte
	next    int64 // the seq of the next entry
}

type batchOf struct {
	seal  int64
	level audit.Level
}

var _ audit.Store = (*Store)(nil)

// AuditSettled returns the number of the last entry, and the time by the store's clock.
func (s *Store) AuditSettled(ctx context.Context) (upto int64, now time.Time, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	defer leave()
	if len(s.audit) > 0 {
		upto = s.audit[len(s.audit)-1].Seq
	}
	return upto, s.now(), nil
}

// AuditDigests returns the digests of entries.
func (s *Store) AuditDigests(ctx context.Context, after, upto int64, limit int) ([]audit.Digest, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []audit.Digest
	var d audit.Digester
	for _, e := range s.audit {
		if e.Seq > after && e.Seq <= upto && len(out) < limit {
			row := rowOf(e)
			out = append(out, d.Digest(&row))
		}
	}
	return out, nil
}

func rowOf(e sluice.AuditEntry) audit.Row {
	row := audit.Row{
		Seq: e.Seq, At: e.At.UnixMicro(), Actor: []byte(e.Actor), Object: []byte(e.Object), Name: []byte(e.Name), Event: []byte(e.Event),
		From: []byte(e.From), To: []byte(e.To), Reason: []byte(e.Reason), Generation: int64(e.Generation), Before: e.Before, After: e.After,
	}
	if !e.JobID.IsZero() {
		row.JobID = e.JobID[:]
	}
	if !e.ActID.IsZero() {
		row.ActID = e.ActID[:]
	}
	return row
}

// LastAuditSeal returns the last seal.
func (s *Store) LastAuditSeal(ctx context.Context) (audit.Seal, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return audit.Seal{}, err
	}
	defer leave()
	return s.lastSeal(), nil
}

func (s *Store) lastSeal() audit.Seal {
	if len(s.chain.seals) == 0 {
		return audit.Seal{}
	}
	return s.chain.seals[len(s.chain.seals)-1]
}

// AuditSeals lists seals.
func (s *Store) AuditSeals(ctx context.Context, from int64, limit int) ([]audit.Seal, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []audit.Seal
	for _, seal := range s.chain.seals {
		if seal.No >= from && len(out) < limit {
			out = append(out, seal)
		}
	}
	return out, nil
}

// AuditBatch returns one batch of a seal.
func (s *Store) AuditBatch(ctx context.Context, seal int64, level audit.Level) ([]byte, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.chain.batches[batchOf{seal, level}], nil
}

// AddAuditSeal adds a seal, and deletes the entries and batches that it records as deleted.
func (s *Store) AddAuditSeal(ctx context.Context, addition audit.Addition) (added bool, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	seal := addition.Seal
	if s.lastSeal().No != seal.No-1 {
		return false, nil
	}
	s.chain.seals = append(s.chain.seals, seal)
	for level, body := range addition.Batches {
		s.chain.batches[batchOf{seal.No, level}] = bytes.Clone(body)
	}
	for _, entry := range addition.Entries {
		s.add(entry)
	}
	for _, level := range audit.Levels() {
		if after, upto, any := addition.Goes(level); any {
			s.forgetAudit(level, after, upto)
		}
	}
	s.chain.seals = slices.DeleteFunc(s.chain.seals, func(old audit.Seal) bool { return old.No < seal.Needed() })
	return true, nil
}

// forgetAudit deletes entries of a level after one seal up to another, and their batches.
func (s *Store) forgetAudit(level audit.Level, after, upto int64) {
	var low, high int64
	for _, seal := range s.chain.seals {
		if seal.No == after {
			low = seal.Upto
		}
		if seal.No == upto {
			high = seal.Upto
		}
	}
	s.audit = slices.DeleteFunc(s.audit, func(e sluice.AuditEntry) bool {
		return e.Seq > low && e.Seq <= high && audit.LevelOf(string(e.Object), string(e.Event)) == level
	})
	for no := after + 1; no <= upto; no++ {
		delete(s.chain.batches, batchOf{no, level})
	}
}
