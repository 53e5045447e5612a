package hook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/scrub"
)

// Version is that of the rules, as messages carry it.
const Version = "1.0.0"

// Options adjust a hook.
type Options struct {
	// DB is the path of the file, which is prepared where it is new.
	DB string
	// HashKey keys the hashes of what was removed. Nil: a random key, so that the hashes of two events never agree.
	HashKey []byte
}

// Taken tells of an event that was stored, and what it took.
type Taken struct {
	Conversation string         `json:"conversation_id"`
	Message      string         `json:"message_id"`
	Duplicate    bool           `json:"duplicate,omitempty"`
	Removed      map[string]int `json:"removed,omitempty"`
	Sanitize     time.Duration  `json:"sanitize_ns"`
	// Write is the whole transaction, commit and enqueue included; Enqueue is its part for the job.
	Write   time.Duration `json:"write_ns"`
	Enqueue time.Duration `json:"enqueue_ns"`
}

// Take takes one event from in.
func Take(ctx context.Context, in io.Reader, o Options) (Taken, error) {
	event, err := Read(in)
	if err != nil {
		return Taken{}, err
	}
	db, err := open(ctx, o.DB)
	if err != nil {
		return Taken{}, err
	}
	taken, err := Store(ctx, db, event, o.HashKey)
	return taken, errors.Join(err, db.Close())
}

// open opens the file, and prepares it where that was not done.
func open(ctx context.Context, path string) (*records.Database, error) {
	db, err := records.Open(ctx, path)
	if !errors.Is(err, sluice.ErrNotMigrated) {
		return db, err
	}
	if db, err = records.Prepare(ctx, path); err != nil {
		return nil, err
	}
	if err := stages.Ensure(ctx, db.Client, stages.Presets()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Store removes from an event what must not be stored, and stores the rest together with the job that validates it.
func Store(ctx context.Context, db *records.Database, e Event, hashKey []byte) (Taken, error) {
	taken := Taken{Conversation: e.Conversation, Message: e.ID, Removed: make(map[string]int)}
	began := time.Now()
	clean, found := scrub.New(scrub.Options{}).Scrub(strings.ToValidUTF8(e.Content, "\uFFFD"))
	taken.Sanitize = time.Since(began)
	removals := removalsOf(e, found, hashKey)
	for _, r := range removals {
		taken.Removed[r.Category]++
	}
	job, err := stages.NewValidation(e.Conversation, Version)
	if err != nil {
		return taken, err
	}
	// The settings are read, and the payload's schema is compiled, before others have to wait for this one's transaction.
	queue, err := db.Client.Queue(ctx, job.Queue)
	if err == nil && queue.Settings.PayloadSchema != "" {
		err = db.Checker.Compile(queue.Settings.PayloadSchema)
	}
	if err != nil {
		return taken, err
	}
	began = time.Now()
	err = db.Transact(ctx, func(tx records.Tx) error {
		added, err := tx.AddMessage(ctx, records.NewMessage{
			ID: e.ID, Conversation: e.Conversation, Event: e.Name, Role: e.Role, Content: clean, Version: Version,
		}, removals)
		if taken.Duplicate = !added; err != nil || taken.Duplicate {
			return err
		}
		enqueue := time.Now()
		_, err = tx.Client.Enqueue(ctx, job)
		taken.Enqueue = time.Since(enqueue)
		return err
	})
	taken.Write = time.Since(began)
	if err != nil {
		return taken, fmt.Errorf("store message %s of conversation %s: %w", e.ID, e.Conversation, err)
	}
	return taken, nil
}

// removalsOf tells of what was removed, without what it was.
func removalsOf(e Event, found []scrub.Finding, key []byte) []records.Removal {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
	}
	var all []records.Removal
	for _, f := range found {
		all = append(all, records.Removal{
			Conversation: e.Conversation, Message: e.ID, Category: string(f.Family), Rule: f.Rule, Detector: "rules",
			Hash: Hash(key, f.Secret), Replacement: "[redacted:" + string(f.Family) + "]", Confidence: 1,
		})
	}
	return all
}

// Hash is a keyed hash. A bare one would give numbers of cards and telephones away: there are too few of them.
func Hash(key []byte, secret string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
