// Package audit makes the audit of a store one that can be shown to an auditor: it seals entries into a hash chain,
// verifies the chain, and deletes by retention without breaking it.
//
// A seal covers the entries above the seal before it. It holds a hash of them for each level, the hash of the seal before,
// and up to which seal each level is gone by retention. The hash of the last seal, the head, stands for all before it: keep
// heads outside of the store, and whoever rewrites the chain or cuts off its end is found out.
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
)

// Level says how long an entry is kept.
type Level string

// The levels. Full has the moves that are written only because the setting `audit` of a queue is full; Notable has all else.
const (
	Notable Level = "notable"
	Full    Level = "full"
)

// Levels lists both.
func Levels() []Level { return []Level{Notable, Full} }

// How long entries are kept where nobody has said it.
const (
	DefaultKeepNotable = 730 * 24 * time.Hour
	DefaultKeepFull    = 30 * 24 * time.Hour
)

// LevelOf gives the level of an entry. It must never change for an event: seals are counted and deleted by it.
func LevelOf(object, event string) Level {
	if object != string(sluice.ObjectJob) {
		return Notable
	}
	switch sluice.Event(event) {
	case sluice.EventEnqueue, sluice.EventClaim, sluice.EventDispatch, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease:
		return Full
	}
	return Notable
}

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String writes the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// Part is what a seal says of one level.
type Part struct {
	// Entries is how many the seal covers, and Hash the hash of the batch that lists them; zero: there are none.
	Entries int64 `json:"entries"`
	Hash    Hash  `json:"hash"`
	// Gone is the seal up to which entries of the level are deleted by retention.
	Gone int64 `json:"gone"`
	// Keep is how long entries of the level are kept from now on; 0: for ever.
	Keep time.Duration `json:"keep"`
}

// Seal is one link of the chain.
type Seal struct {
	// No counts the seals from 1 on.
	No int64 `json:"no"`
	// At is when it was made, by the store's clock.
	At time.Time `json:"at"`
	// Upto is the last seq that it covers; the first is that behind Upto of the seal before.
	Upto int64 `json:"upto"`
	// Previous is the hash of the seal before.
	Previous Hash `json:"previous"`
	Notable  Part `json:"notable"`
	Full     Part `json:"full"`
	// Hash is that of all of the above.
	Hash Hash `json:"hash"`
}

// Part gives what the seal says of a level.
func (s *Seal) Part(level Level) *Part {
	if level == Full {
		return &s.Full
	}
	return &s.Notable
}

// Needed is the first seal that is kept: everything that the seals before it cover is gone.
func (s Seal) Needed() int64 { return max(1, min(s.Notable.Gone, s.Full.Gone)) }

// Head gives what stands for the chain up to this seal.
func (s Seal) Head() Head { return Head{No: s.No, Hash: s.Hash} }

// Head is the number and the hash of a seal. Kept outside of the store it proves later that the chain is still the same.
type Head struct {
	No   int64
	Hash Hash
}

// String writes the head as NUMBER-HASH.
func (h Head) String() string { return strconv.FormatInt(h.No, 10) + "-" + h.Hash.String() }

// MarshalText writes the head as NUMBER-HASH.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ParseHead reads what String writes.
func ParseHead(text string) (Head, error) {
	number, hash, found := strings.Cut(strings.TrimSpace(text), "-")
	no, err := strconv.ParseInt(number, 10, 64)
	bytes, hexErr := hex.DecodeString(hash)
	if !found || err != nil || hexErr != nil || no < 1 || len(bytes) != sha256.Size {
		return Head{}, &sluice.InvalidError{Field: "head", Rule: fmt.Sprintf("%.80q must be a number, a hyphen and 64 hexadecimal digits", text)}
	}
	return Head{No: no, Hash: Hash(bytes)}, nil
}

// Store is what a store does for the chain. Every store of Sluice does it; Of finds it.
type Store interface {
	// AuditSettled gives the seq up to which every entry that can ever be there is there, and the store's clock. Where
	// transactions are under way that add entries it may be lower than the last one; asking again later gives more.
	AuditSettled(ctx context.Context) (upto int64, now time.Time, err error)
	// AuditDigests gives the entries above a seq, up to another, in order, at most limit.
	AuditDigests(ctx context.Context, after, upto int64, limit int) ([]Digest, error)
	// LastAuditSeal gives the last seal; the zero Seal: there is none.
	LastAuditSeal(ctx context.Context) (Seal, error)
	// AuditSeals gives the seals from a number on, in order, at most limit.
	AuditSeals(ctx context.Context, from int64, limit int) ([]Seal, error)
	// AuditBatch gives the batch of a seal and a level; nil: there is none.
	AuditBatch(ctx context.Context, seal int64, level Level) ([]byte, error)
	// AddAuditSeal stores a seal and all that belongs to it in one transaction, and deletes what it says is gone and the
	// seal before did not. Where another seal has its number it does nothing, and added is false.
	AddAuditSeal(ctx context.Context, addition Addition) (added bool, err error)
}

// Addition is a seal on its way into a store.
type Addition struct {
	Seal Seal
	// Before is the seal that it follows; zero: none.
	Before Seal
	// Batches by level, of those that have entries.
	Batches map[Level][]byte
	// Entries are added to the audit with it.
	Entries []sluice.AuditEntry
}

// Goes gives the seals behind which, and up to which, entries of a level are to be deleted.
func (a *Addition) Goes(level Level) (after, upto int64, any bool) {
	after, upto = a.Before.Part(level).Gone, a.Seal.Part(level).Gone
	return after, upto, upto > after
}

// Of looks for the chain in a store, through those that decorate it.
func Of(store sluice.Store) (Store, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return nil, err
	}
	if chain, ok := sluice.StoreAs[Store](store); ok {
		return chain, nil
	}
	return nil, fmt.Errorf("this store does not seal its audit: %w", sluice.ErrNotFound)
}
