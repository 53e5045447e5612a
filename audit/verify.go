package audit

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-queue/sluice"
)

// FaultKind is the kind of manipulation of the audit.
type FaultKind string

// The kinds.
const (
	// Changed, Removed and Inserted concern one entry.
	Changed  FaultKind = "changed"
	Removed  FaultKind = "removed"
	Inserted FaultKind = "inserted"
	// Broken means that a seal was changed, removed or inserted; the chain no longer proves its entries.
	Broken FaultKind = "broken"
	// Cut means that a head kept outside of the store is not in the chain.
	Cut FaultKind = "cut"
)

// Fault is the first fault found.
type Fault struct {
	// Kind says what is wrong.
	Kind FaultKind `json:"kind"`
	// Seq is the faulty entry; for a fault of the chain, the first entry that the chain no longer proves.
	Seq int64 `json:"seq"`
	// Seal is the seal that covers the entry, and SealedAt its time; zero: unknown.
	Seal     int64     `json:"seal"`
	SealedAt time.Time `json:"sealed_at,omitzero"`
	// Summary is one sentence for people.
	Summary string `json:"summary"`
}

// Report is the result of [Verify].
type Report struct {
	// Seals is how many seals were read, from First to Last. Entries is how many entries were compared with
	// them.
	Seals   int64 `json:"seals"`
	First   int64 `json:"first_seal"`
	Last    Seal  `json:"last_seal"`
	Entries int64 `json:"entries"`
	// Gone is how many entries of the existing seals were deleted by retention, by level.
	Gone map[Level]int64 `json:"gone"`
	// Unsealed is how many entries wait for a seal, at most [UnsealedLimit]; OldestUnsealed is the time of the
	// oldest.
	Unsealed       int64     `json:"unsealed"`
	OldestUnsealed time.Time `json:"oldest_unsealed,omitzero"`
	// Heads are the given heads found in the chain. TooOld are heads older than the part that retention has
	// left.
	Heads   []Head `json:"heads,omitempty"`
	TooOld  []Head `json:"heads_too_old,omitempty"`
	Fault   *Fault `json:"fault,omitempty"`
	Checked bool   `json:"checked"` // to the end, or to the fault
}

// UnsealedLimit is the number at which the count of unsealed entries stops.
const UnsealedLimit = 100_000

// VerifyOptions adjust [Verify]. The zero value works.
type VerifyOptions struct {
	// Heads are heads kept outside of the store, which must be in the chain.
	Heads []Head
	// Progress receives intermediate reports. Default: none.
	Progress func(Report)
}

// verifyPage is how many seals are read at once.
const verifyPage = 200

// Verify reads the whole chain and all entries that it covers, in order, in short reads, and stops at the first
// fault. Verify needs little memory, and may run while other processes add entries, seal and prune.
func Verify(ctx context.Context, store Store, options VerifyOptions) (Report, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Report{}, err
	}
	v := &verifier{store: store, options: options, report: Report{Gone: make(map[Level]int64)}, heads: make(map[int64][]Head)}
	for _, h := range options.Heads {
		v.heads[h.No] = append(v.heads[h.No], h)
	}
	err := v.run(ctx)
	if err != nil {
		return v.report, fmt.Errorf("verify the audit: %w", err)
	}
	v.report.Checked = true
	return v.report, nil
}

type verifier struct {
	store   Store
	options VerifyOptions
	report  Report
	heads   map[int64][]Head
	// before is the seal before, and end the last seal as last read.
	before, end Seal
	// ahead are the entries up to the seq covered that no seal was compared with. They were read after end. Upto is the last seq of
	// the seals that were read.
	ahead         []Digest
	covered, upto int64
}

func (v *verifier) run(ctx context.Context) (err error) {
	if v.end, err = v.store.LastAuditSeal(ctx); err != nil {
		return err
	}
	v.covered = v.low()
	for from := int64(0); ; from = v.before.No + 1 {
		seals, err := v.store.AuditSeals(ctx, from, verifyPage)
		if err != nil {
			return err
		}
		if len(seals) > 0 {
			v.upto = seals[len(seals)-1].Upto
		}
		for i := range seals {
			if err := v.seal(ctx, &seals[i]); err != nil || v.report.Fault != nil {
				return err
			}
		}
		if v.options.Progress != nil {
			v.options.Progress(v.report)
		}
		if len(seals) < verifyPage {
			break
		}
	}
	v.lostHeads()
	return v.unsealed(ctx)
}

// seal checks a seal, and then the entries that it covers.
func (v *verifier) seal(ctx context.Context, s *Seal) error {
	if says := v.link(s); says != "" {
		v.report.Fault = &Fault{Kind: Broken, Seq: v.firstAfter(), Seal: s.No, SealedAt: s.At, Summary: says}
		return nil
	}
	for _, h := range v.heads[s.No] {
		if h.Hash != s.Hash {
			v.report.Fault = &Fault{Kind: Cut, Seq: v.firstAfter(), Seal: s.No, SealedAt: s.At, Summary: fmt.Sprintf(
				"seal %d is not the one whose hash was told: the end of the chain was cut off or rewritten before it", s.No)}
			return nil
		}
		v.report.Heads = append(v.report.Heads, h)
	}
	if err := v.entries(ctx, s); err != nil || v.report.Fault != nil {
		return err
	}
	if v.report.Seals == 0 {
		v.report.First = s.No
	}
	v.report.Seals++
	v.report.Last, v.before = *s, *s
	return nil
}

// link returns the fault of a seal itself; empty: none.
func (v *verifier) link(s *Seal) string {
	first := v.before.No == 0
	switch {
	case s.No < 1 || s.Hash != s.seal():
		return fmt.Sprintf("seal %d was changed: its hash is not that of what it says", s.No)
	case first && s.No > v.end.Needed():
		return fmt.Sprintf("the seals before seal %d were removed, and retention needs them from %d on", s.No, v.end.Needed())
	case first && s.No == 1 && s.Previous != Hash{}:
		return "seal 1 follows a seal that is not there"
	case !first && s.No != v.before.No+1:
		return fmt.Sprintf("seal %d was removed: seal %d comes after %d", v.before.No+1, s.No, v.before.No)
	case !first && s.Previous != v.before.Hash:
		return fmt.Sprintf("seal %d does not follow seal %d as it is now: one of them was changed", s.No, v.before.No)
	case !first && s.Upto < v.before.Upto:
		return fmt.Sprintf("seal %d ends at entry %d, before seal %d", s.No, s.Upto, v.before.No)
	}
	for _, level := range Levels() {
		if gone := s.Part(level).Gone; gone < v.before.Part(level).Gone || gone >= s.No {
			return fmt.Sprintf("seal %d says that %s entries up to seal %d are gone, which cannot be", s.No, level, gone)
		}
	}
	return ""
}

// firstAfter returns the first entry that the seals so far do not cover.
func (v *verifier) firstAfter() int64 {
	if v.before.No == 0 {
		return 1
	}
	return v.before.Upto + 1
}

// low returns the seq after which a seal's entries begin. The first remaining seal stands for all seals before
// it.
func (v *verifier) low() int64 { return v.before.low() }

// entries compares the entries of a seal with the stored ones. A mismatch is read again, because retention may
// have deleted the entries just now.
func (v *verifier) entries(ctx context.Context, s *Seal) error {
	for range tries {
		found, err := v.read(ctx, s)
		if err != nil {
			return err
		}
		fault, err := v.compare(ctx, s, found)
		if err != nil {
			return err
		}
		if fault == nil {
			for _, level := range Levels() {
				v.report.Entries += found[level].entries
				if v.end.Part(level).Gone >= s.No {
					v.report.Gone[level] += s.Part(level).Entries
				}
			}
			return nil
		}
		was := v.end
		v.ahead, v.covered = nil, v.low()
		if v.end, err = v.store.LastAuditSeal(ctx); err != nil {
			return err
		}
		if was.Notable.Gone == v.end.Notable.Gone && was.Full.Gone == v.end.Full.Gone {
			v.report.Fault = fault
			return nil
		}
	}
	return fmt.Errorf("retention deletes faster than the audit is read")
}

// read lists the stored entries of a seal, by level. read stops once a level has too many.
func (v *verifier) read(ctx context.Context, s *Seal) (map[Level]*batch, error) {
	found := map[Level]*batch{Notable: {}, Full: {}}
	for {
		for len(v.ahead) > 0 && v.ahead[0].Seq <= s.Upto {
			found[v.ahead[0].Level].add(v.ahead[0])
			v.ahead = v.ahead[1:]
		}
		tooMany := found[Notable].entries > s.Notable.Entries || found[Full].entries > s.Full.Entries
		if len(v.ahead) > 0 || v.covered >= s.Upto || tooMany {
			return found, nil
		}
		if err := v.readAhead(ctx, s.Upto); err != nil {
			return nil, err
		}
	}
}

// readAhead reads entries of the seals that were read, at least up to a seq: most seals are short, and a read for each takes long.
func (v *verifier) readAhead(ctx context.Context, least int64) (err error) {
	upto := max(least, v.upto)
	if v.ahead, err = v.store.AuditDigests(ctx, v.covered, upto, batchSize); err != nil {
		return err
	}
	if v.covered = upto; len(v.ahead) == batchSize {
		v.covered = v.ahead[batchSize-1].Seq
	}
	return nil
}

// compare returns the first entry of a seal that differs from its sealed state.
func (v *verifier) compare(ctx context.Context, s *Seal, found map[Level]*batch) (*Fault, error) {
	var first *Fault
	for _, level := range Levels() {
		fault, err := v.compareLevel(ctx, s, level, found[level])
		if err != nil {
			return nil, err
		}
		if fault != nil && (first == nil || fault.Seq < first.Seq) {
			first = fault
		}
	}
	return first, nil
}

func (v *verifier) compareLevel(ctx context.Context, s *Seal, level Level, found *batch) (*Fault, error) {
	fault := func(kind FaultKind, seq int64, format string, args ...any) *Fault {
		return &Fault{Kind: kind, Seq: seq, Seal: s.No, SealedAt: s.At, Summary: fmt.Sprintf(format, args...)}
	}
	body := found.body()
	if v.end.Part(level).Gone >= s.No {
		if body == nil {
			return nil, nil
		}
		seq := shortDigestsOf(body)[0].seq
		return fault(Inserted, seq, "entry %d was put in: retention has deleted all of its time", seq), nil
	}
	if found.entries == s.Part(level).Entries && hashOf(body) == s.Part(level).Hash {
		return nil, nil
	}
	sealed, err := v.store.AuditBatch(ctx, s.No, level)
	if err != nil {
		return nil, err
	}
	if hashOf(sealed) != s.Part(level).Hash {
		return fault(Broken, max(1, v.firstAfter()), "entries of seal %d were changed, removed or put in, and so was the list that would tell which: one of %d to %d",
			s.No, v.firstAfter(), s.Upto), nil
	}
	return differing(shortDigestsOf(sealed), shortDigestsOf(body), fault, s, level), nil
}

// differing returns the first difference of two lists.
func differing(sealed, there []shortDigest, fault func(FaultKind, int64, string, ...any) *Fault, s *Seal, level Level) *Fault {
	for i := 0; ; i++ {
		switch {
		case i == len(sealed) && i == len(there):
			return fault(Changed, s.Upto, "entries of seal %d are not those that were sealed (%s, up to entry %d), though each looks alike", s.No, level, s.Upto)
		case i == len(there) || i < len(sealed) && sealed[i].seq < there[i].seq:
			return fault(Removed, sealed[i].seq, "entry %d was removed after it was sealed", sealed[i].seq)
		case i == len(sealed) || there[i].seq < sealed[i].seq:
			return fault(Inserted, there[i].seq, "entry %d was put in after its place was sealed", there[i].seq)
		case !bytes.Equal(sealed[i].sum[:], there[i].sum[:]):
			return fault(Changed, there[i].seq, "entry %d was changed after it was sealed", there[i].seq)
		}
	}
}

// lostHeads looks for heads beyond the chain's end, and for heads before the part that retention has left.
func (v *verifier) lostHeads() {
	for _, h := range v.options.Heads {
		switch {
		case h.No > v.before.No:
			v.report.Fault = &Fault{Kind: Cut, Seq: v.firstAfter(), Seal: h.No, Summary: fmt.Sprintf(
				"seal %d, which was told outside of the store, is not there: the chain ends with seal %d, so its end was cut off", h.No, v.before.No)}
		case h.No < v.report.First:
			v.report.TooOld = append(v.report.TooOld, h)
		}
	}
}

// unsealed counts the entries that no seal covers yet.
func (v *verifier) unsealed(ctx context.Context) error {
	if v.report.Fault != nil {
		return nil
	}
	after := v.low()
	for v.report.Unsealed < UnsealedLimit {
		digests, err := v.store.AuditDigests(ctx, after, math.MaxInt64, batchSize)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if v.report.OldestUnsealed.IsZero() || d.At.Before(v.report.OldestUnsealed) {
				v.report.OldestUnsealed = d.At
			}
		}
		v.report.Unsealed += int64(len(digests))
		if len(digests) < batchSize {
			return nil
		}
		after = digests[len(digests)-1].Seq
	}
	return nil
}
