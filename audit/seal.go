package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// batchSize is the most entries that a seal covers, and about the number that a step of retention deletes.
const batchSize = 10_000

// recentActs is among how many acts one that is sent again is looked for.
const recentActs = 100

// tries is how often to retry a seal after another process was quicker.
const tries = 10

// SealOptions adjust [SealSettled]. The zero value seals all settled entries.
type SealOptions struct {
	// Patience is how long entries may wait for a full seal. Default: 0.
	Patience time.Duration
	// Most is the most seals to make. Default: no limit.
	Most int64
}

// Sealed is the result of [SealSettled].
type Sealed struct {
	// Entries is how many entries were sealed, and Seals by how many seals.
	Entries, Seals int64
	// Last is the last seal; zero: none.
	Last Seal
}

// next returns the seal after another, with only number, time and previous hash changed.
func next(before Seal, now time.Time) Seal {
	s := Seal{No: before.No + 1, At: now.UTC().Truncate(time.Microsecond), Upto: before.Upto, Previous: before.Hash}
	if before.No == 0 {
		s.Notable.Keep, s.Full.Keep = DefaultKeepNotable, DefaultKeepFull
	}
	for _, level := range Levels() {
		if before.No > 0 {
			s.Part(level).Keep = before.Part(level).Keep
		}
		s.Part(level).Gone = before.Part(level).Gone
	}
	return s
}

// low returns the seq after which the entries of the next seal begin.
func (s *Seal) low() int64 {
	if s.No == 0 {
		return math.MinInt64
	}
	return s.Upto
}

// Keeps returns how long entries of a level are kept, by the last seal.
func (s Seal) Keeps(level Level) time.Duration {
	if s.No == 0 {
		first := next(Seal{}, time.Time{})
		return first.Part(level).Keep
	}
	return s.Part(level).Keep
}

// SealSettled seals the settled entries. Any number of processes may do so at once.
func SealSettled(ctx context.Context, store Store, options SealOptions) (Sealed, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Sealed{}, err
	}
	var done Sealed
	lost := 0
	last, err := store.LastAuditSeal(ctx)
	if err != nil {
		return done, err
	}
	upto, now, err := store.AuditSettled(ctx)
	for err == nil && ctx.Err() == nil && last.low() < upto && lost < tries && (options.Most == 0 || done.Seals < options.Most) {
		waited := now.Sub(last.At)
		partial := waited >= options.Patience || waited < 0 // the clock was set back since, or somebody made a seal of the future
		if !partial && upto-last.Upto < batchSize {
			break
		}
		var addition Addition
		if addition, err = cover(ctx, store, last, upto, now, partial); err != nil || addition.Seal.No == 0 {
			break
		}
		var added bool
		if added, err = store.AddAuditSeal(ctx, addition); err != nil {
			break
		}
		if !added {
			lost++
			last, err = store.LastAuditSeal(ctx)
			continue
		}
		last = addition.Seal
		done.Seals++
		done.Entries += last.Notable.Entries + last.Full.Entries
	}
	done.Last = last
	if err != nil {
		return done, fmt.Errorf("seal the audit: %w", err)
	}
	return done, nil
}

// cover makes a seal of the entries after the last one. Its number is 0 if there is nothing to seal yet.
func cover(ctx context.Context, store Store, last Seal, upto int64, now time.Time, partial bool) (Addition, error) {
	digests, err := store.AuditDigests(ctx, last.low(), upto, batchSize)
	if err != nil || len(digests) == 0 || len(digests) < batchSize && !partial {
		return Addition{}, err
	}
	s := next(last, now)
	s.Upto = upto
	if len(digests) == batchSize {
		s.Upto = digests[len(digests)-1].Seq
	}
	batches := make(map[Level]*batch, 2)
	for _, level := range Levels() {
		batches[level] = &batch{}
	}
	for _, d := range digests {
		batches[d.Level].add(d)
	}
	bodies := make(map[Level][]byte, 2)
	for level, b := range batches {
		if body := b.body(); body != nil {
			bodies[level] = body
		}
		s.Part(level).Entries, s.Part(level).Hash = b.entries, hashOf(bodies[level])
	}
	s.Hash = s.seal()
	return Addition{Seal: s, Before: last, Batches: bodies}, nil
}

// MaxKeep is the longest retention of entries, besides for ever.
const MaxKeep = 3650 * 24 * time.Hour

// keeper is a store that keeps its chain by itself, such as one behind a server.
type keeper interface {
	KeepAudit(ctx context.Context, keep map[Level]time.Duration, act sluice.Act) (Seal, error)
}

// Keep sets how long entries of the levels are kept from now on; 0: for ever. The change is stored in the chain
// and in the audit.
func Keep(ctx context.Context, store Store, keep map[Level]time.Duration, act sluice.Act) (Seal, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Seal{}, err
	}
	for level, d := range keep {
		if d < 0 || d > MaxKeep || d%time.Millisecond != 0 {
			return Seal{}, &sluice.InvalidError{Field: "keep " + string(level), Rule: fmt.Sprintf("%s must be 0s (for ever) or at most 3650d, in milliseconds", d)}
		}
	}
	if other, is := store.(keeper); is {
		return other.KeepAudit(ctx, keep, act)
	}
	for range tries {
		last, err := store.LastAuditSeal(ctx)
		if err != nil {
			return Seal{}, err
		}
		if before, err := keptBefore(ctx, store, act); err != nil || before {
			return last, err
		}
		_, now, err := store.AuditSettled(ctx)
		if err != nil {
			return Seal{}, err
		}
		s := next(last, now)
		before := keepText(s)
		for level, d := range keep {
			s.Part(level).Keep = d
		}
		s.Hash = s.seal()
		entry := sluice.AuditEntry{
			Object: ObjectAudit, Name: "keep", Event: EventChange, Actor: act.By, Reason: act.Reason, ActID: act.ID, Before: before, After: keepText(s),
		}
		added, err := store.AddAuditSeal(ctx, Addition{Seal: s, Before: last, Entries: []sluice.AuditEntry{entry}})
		if err != nil || added {
			return s, err
		}
	}
	return Seal{}, fmt.Errorf("say how long the audit is kept: %w", sluice.ErrConflict)
}

// keptBefore reports whether the act was sent before: it takes effect once.
func keptBefore(ctx context.Context, store Store, act sluice.Act) (bool, error) {
	reader, is := store.(interface {
		Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error)
	})
	if !is || act.ID.IsZero() {
		return false, nil
	}
	entries, err := reader.Audit(ctx, sluice.AuditFilter{Object: ObjectAudit, Name: "keep", Limit: recentActs})
	return slices.ContainsFunc(entries, func(e sluice.AuditEntry) bool { return e.ActID == act.ID }), err
}

func keepText(s Seal) []byte {
	return fmt.Appendf(nil, `{"notable":%q,"full":%q}`, s.Notable.Keep, s.Full.Keep)
}

// Waiting returns since when entries have waited for a seal; zero: none waits. since is the time of the oldest
// unsealed entry, or of the last seal if that is later. now is the store's clock.
func Waiting(ctx context.Context, store Store) (since, now time.Time, err error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return time.Time{}, time.Time{}, err
	}
	last, err := store.LastAuditSeal(ctx)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	_, now, err = store.AuditSettled(ctx)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	oldest, err := store.AuditDigests(ctx, last.low(), math.MaxInt64, 1)
	if err != nil || len(oldest) == 0 {
		return time.Time{}, now, err
	}
	since = oldest[0].At
	if last.At.After(since) && !last.At.After(now) { // a seal of the future says nothing
		since = last.At
	}
	return since, now, nil
}
