// Package audit makes a store's audit tamper-evident: it seals entries into a hash chain, verifies the chain,
// and deletes by retention without breaking it.
//
// Begin with [Of], which finds the chain of a store, then [Verify] and [Keep]. Upkeep calls [SealSettled] and
// [Prune].
//
// A seal covers the entries after the seal before it. Each seal holds a hash of those entries per level and the
// hash of the seal before. Each seal also records up to which seal retention has deleted each level. The hash
// of the last seal, the head, stands for the whole chain. Keep heads outside of the store: they prove a later
// change or a cut end.
//
// Next, read docs/guide/audit.md, and docs/decisions/0022-audit-chain.md for the reasons.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Level decides how long an entry is kept.
type Level string

// The levels. Full holds the moves that are written only if the setting `audit` of a queue is full; Notable
// holds all others.
const (
	Notable Level = "notable"
	Full    Level = "full"
)

// Levels lists both levels.
func Levels() []Level { return []Level{Notable, Full} }

// How long entries are kept by default.
const (
	DefaultKeepNotable = 730 * 24 * time.Hour
	DefaultKeepFull    = 30 * 24 * time.Hour
)

// LevelOf returns the level of an entry. The level of an event must never change, because seals count and
// delete by it.
func LevelOf(object, event string) Level {
	if object != string(ObjectJob) {
		return Notable
	}
	switch sluice.Event(event) {
	case sluice.EventEnqueue, sluice.EventClaim, sluice.EventDispatch, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease:
		return Full
	}
	return Notable
}

// Hash is a SHA-256 hash.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the hash in hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a hash of 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	bytes, err := hex.DecodeString(string(text))
	if err != nil || len(bytes) != sha256.Size {
		return &sluice.InvalidError{Field: "hash", Rule: fmt.Sprintf("%.80q must be 64 hexadecimal digits", text)}
	}
	*h = Hash(bytes)
	return nil
}

// Part is the part of a seal about one level.
type Part struct {
	// Entries is how many entries the seal covers. Hash is the hash of the batch that lists them; zero: none.
	Entries int64 `json:"entries"`
	Hash    Hash  `json:"hash"`
	// Gone is the seal up to which retention has deleted entries of the level.
	Gone int64 `json:"gone"`
	// Keep is how long entries of the level are kept from now on; 0: for ever.
	Keep time.Duration `json:"keep"`
}

// Seal is one link of the chain.
type Seal struct {
	// No is the number of the seal, from 1 on.
	No int64 `json:"no"`
	// At is when the seal was made, by the store's clock.
	At time.Time `json:"at"`
	// Upto is the last seq that the seal covers. The first follows Upto of the seal before.
	Upto int64 `json:"upto"`
	// Previous is the hash of the seal before.
	Previous Hash `json:"previous"`
	Notable  Part `json:"notable"`
	Full     Part `json:"full"`
	// Hash is the hash of all fields above.
	Hash Hash `json:"hash"`
}

// Part returns the part of the seal about a level.
func (s *Seal) Part(level Level) *Part {
	if level == Full {
		return &s.Full
	}
	return &s.Notable
}

// Needed returns the first seal to keep: retention has deleted all entries of the seals before it.
func (s Seal) Needed() int64 { return max(1, min(s.Notable.Gone, s.Full.Gone)) }

// Head returns the head of the chain up to this seal.
func (s Seal) Head() Head { return Head{No: s.No, Hash: s.Hash} }

// Head is the number and the hash of a seal. A head kept outside of the store later proves that the chain is
// unchanged.
type Head struct {
	No   int64
	Hash Hash
}

// String returns the head as NUMBER-HASH.
func (h Head) String() string { return strconv.FormatInt(h.No, 10) + "-" + h.Hash.String() }

// MarshalText returns the head as NUMBER-HASH.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ParseHead parses the text of [Head.String].
func ParseHead(text string) (Head, error) {
	number, hash, found := strings.Cut(strings.TrimSpace(text), "-")
	no, err := strconv.ParseInt(number, 10, 64)
	head := Head{No: no}
	if !found || err != nil || no < 1 || head.Hash.UnmarshalText([]byte(hash)) != nil {
		return Head{}, &sluice.InvalidError{Field: "head", Rule: fmt.Sprintf("%.80q must be a number, a hyphen and 64 hexadecimal digits", text)}
	}
	return head, nil
}

// Store is the port of the chain. Every store of Sluice has it; [Of] finds it.
type Store interface {
	// AuditSettled returns the seq up to which no more entries can appear, and the store's clock. During
	// transactions that add entries, the seq may be lower than the last one; a later call returns more.
	AuditSettled(ctx context.Context) (upto int64, now time.Time, err error)
	// AuditDigests returns the entries above one seq, up to another, in order, at most limit.
	AuditDigests(ctx context.Context, after, upto int64, limit int) ([]Digest, error)
	// LastAuditSeal returns the last seal; the zero Seal: none.
	LastAuditSeal(ctx context.Context) (Seal, error)
	// AuditSeals returns the seals from a number on, in order, at most limit.
	AuditSeals(ctx context.Context, from int64, limit int) ([]Seal, error)
	// AuditBatch returns the batch of a seal and a level; nil: none.
	AuditBatch(ctx context.Context, seal int64, level Level) ([]byte, error)
	// AddAuditSeal stores a seal and its addition in one transaction, and deletes the entries that are newly
	// gone. If another seal has its number, AddAuditSeal does nothing, and added is false.
	AddAuditSeal(ctx context.Context, addition Addition) (added bool, err error)
}

// Addition is a seal to store, with its batches and entries.
type Addition struct {
	Seal Seal
	// Before is the seal before it; zero: none.
	Before Seal
	// Batches are the batches by level, for levels with entries.
	Batches map[Level][]byte
	// Entries are added to the audit together with the seal.
	Entries []sluice.AuditEntry
}

// Goes returns the range of seals whose entries of a level are to be deleted: after one seal, up to another.
func (a *Addition) Goes(level Level) (after, upto int64, any bool) {
	after, upto = a.Before.Part(level).Gone, a.Seal.Part(level).Gone
	return after, upto, upto > after
}

// Of returns the chain of a store, also through stores that decorate it.
func Of(store sluice.Store) (Store, error) {
	return feature.Port[Store](store, "does not seal its audit")
}
