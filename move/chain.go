package move

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// sealed describes the last seal of the source for the target.
type sealed struct {
	No, Upto int64
	Hash     string // hexadecimal
	// Notable and Full are how long entries are kept, in milliseconds.
	Notable, Full int64
}

// successor begins the chain of the target; nil: the source has none, and upkeep begins one.
func (s *sealed) successor(from string) (*audit.Addition, error) {
	if s == nil {
		return nil, nil
	}
	head, err := audit.ParseHead(fmt.Sprintf("%d-%s", s.No, s.Hash))
	if err != nil {
		return nil, fmt.Errorf("the last seal of the audit in %s: %w", from, err)
	}
	last := audit.Seal{No: head.No, Hash: head.Hash, Upto: s.Upto}
	last.Notable.Keep, last.Full.Keep = time.Duration(s.Notable)*time.Millisecond, time.Duration(s.Full)*time.Millisecond
	chain, err := audit.Successor(last, from, time.Now(), sluice.Act{By: "sluice", Reason: "the store was moved"})
	return &chain, err
}

const sealColumns = `no, at, upto, previous, notable_entries, notable_hash, notable_gone, notable_keep_ms,
	full_entries, full_hash, full_gone, full_keep_ms, hash`

// sealValues returns the values of the seal columns, with the instant in the store's form.
func sealValues(s *audit.Seal, at any) []any {
	return []any{
		s.No, at, s.Upto, s.Previous[:], s.Notable.Entries, s.Notable.Hash[:], s.Notable.Gone, s.Notable.Keep.Milliseconds(),
		s.Full.Entries, s.Full.Hash[:], s.Full.Gone, s.Full.Keep.Milliseconds(), s.Hash[:],
	}
}

// addChain writes the first seal and its entries, by statements of the store.
func addChain(ctx context.Context, chain *audit.Addition, at any, seal, entry string, exec func(ctx context.Context, text string, args ...any) error) error {
	if chain == nil {
		return nil
	}
	if err := exec(ctx, seal, sealValues(&chain.Seal, at)...); err != nil {
		return fmt.Errorf("begin the audit's chain: %w", err)
	}
	for _, e := range chain.Entries {
		if err := exec(ctx, entry, at, e.Actor, string(e.Object), e.Name, string(e.Event), e.Reason, string(e.After)); err != nil {
			return fmt.Errorf("tell the audit from where its chain goes on: %w", err)
		}
	}
	return nil
}
