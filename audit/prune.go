package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// pruneSeals is the most seals that one step of retention covers.
const pruneSeals = 100

// Pruned is the result of [Prune].
type Pruned struct {
	// Entries is how many entries were deleted, by level.
	Entries map[Level]int64
}

// Any returns how many entries were deleted in all.
func (p Pruned) Any() int64 { return p.Entries[Notable] + p.Entries[Full] }

// Prune deletes entries whose seal is older than their level is kept, seal after seal, in steps of some 10,000.
// Each step adds a seal, which records the deletion in the same transaction. by is the actor for the audit.
func Prune(ctx context.Context, store Store, by string) (Pruned, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Pruned{}, err
	}
	done := Pruned{Entries: make(map[Level]int64)}
	for _, level := range Levels() {
		lost := 0
		for more := true; more && ctx.Err() == nil && lost < tries; {
			deleted, added, found, err := pruneStep(ctx, store, level, by)
			if err != nil {
				return done, fmt.Errorf("prune the audit: %w", err)
			}
			done.Entries[level] += deleted
			if more = found; found && !added {
				lost++
			}
		}
	}
	return done, ctx.Err()
}

// pruneStep deletes some entries of a level. found is false if there is nothing to delete.
func pruneStep(ctx context.Context, store Store, level Level, by string) (deleted int64, added, found bool, err error) {
	last, err := store.LastAuditSeal(ctx)
	if err != nil || last.No == 0 || last.Part(level).Keep == 0 {
		return 0, false, false, err
	}
	_, now, err := store.AuditSettled(ctx)
	if err != nil {
		return 0, false, false, err
	}
	seals, err := store.AuditSeals(ctx, last.Part(level).Gone+1, pruneSeals)
	if err != nil {
		return 0, false, false, err
	}
	s := next(last, now)
	over := 0
	for _, old := range seals {
		part := old.Part(level)
		if now.Sub(old.At) < last.Part(level).Keep || over > 0 && deleted+part.Entries > batchSize {
			break
		}
		over++
		deleted += part.Entries
		s.Part(level).Gone = old.No
	}
	// Seals without entries are skipped only by the hundred, because each step makes a seal.
	if deleted == 0 && over < pruneSeals {
		return 0, false, false, nil
	}
	s.Hash = s.seal()
	added, err = store.AddAuditSeal(ctx, Addition{Seal: s, Before: last, Entries: gone(level, last, s, deleted, by)})
	if !added {
		deleted = 0
	}
	return deleted, added, true, err
}

// gone returns the audit entry about a deletion by retention.
func gone(level Level, last, s Seal, entries int64, by string) []sluice.AuditEntry {
	if entries == 0 {
		return nil
	}
	after := fmt.Appendf(nil, `{"level":%q,"entries":%d,"from_seal":%d,"to_seal":%d,"keep":%q}`,
		level, entries, last.Part(level).Gone+1, s.Part(level).Gone, s.Part(level).Keep.Round(time.Second))
	return []sluice.AuditEntry{{Object: ObjectAudit, Name: "keep", Event: EventPrune, Actor: by, After: after}}
}
