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
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/scrub"
)

// Version is that of the rules, as messages carry it.
const Version = "1.0.0"

// Window is how long a hook tries to bring events into the store. What is not there by then stays in the spool.
const Window = 40 * time.Millisecond

// Options adjust a hook.
type Options struct {
	// DB is the path of the file. A hook neither makes nor migrates it: until that is done, events wait in the spool.
	DB string
	// HashKey keys the hashes of what was removed. Nil: a random key, so that the hashes of two events never agree.
	HashKey []byte
	// Logger gets a line for each event that waits or was set aside. Default: none.
	Logger *slog.Logger
}

// Taken tells of an event that was taken, and what it took.
type Taken struct {
	Conversation string `json:"conversation_id"`
	Message      string `json:"message_id"`
	Duplicate    bool   `json:"duplicate,omitempty"`
	// Spooled says that the event is in the spool, from where the next hook or a worker takes it in.
	Spooled  bool           `json:"spooled,omitempty"`
	Removed  map[string]int `json:"removed,omitempty"`
	Sanitize time.Duration  `json:"sanitize_ns"`
	// Spool is how long it took to write the event where it survives. Write is the whole transaction, commit and enqueue
	// included; Enqueue is its part for the job. Both are 0 of an event that is spooled.
	Spool   time.Duration `json:"spool_ns"`
	Write   time.Duration `json:"write_ns"`
	Enqueue time.Duration `json:"enqueue_ns"`
}

// Take takes one event from in: it is in the spool or in the store when Take returns, unless there is an error. It returns
// after Window whatever holds the store; what it does then goes on until the process ends, and may be ended at any point.
func Take(ctx context.Context, in io.Reader, o Options) (Taken, error) {
	event, err := Read(in)
	if err != nil {
		return Taken{}, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, Window)
	defer cancel()
	clean, taken := sanitize(event, o.HashKey)
	spool := SpoolOf(o.DB)
	began := time.Now()
	file, unspooled := spool.add(clean)
	taken.Spool = time.Since(began)
	taken.Spooled = true
	work := func(db *records.Database, stored func(Taken)) error { return spool.TakeIn(ctx, db, o.Logger, stored) }
	end := func() {}
	if unspooled != nil {
		work = func(db *records.Database, stored func(Taken)) error {
			if err := ready(ctx, db); err != nil {
				return err
			}
			t, err := store(ctx, db, clean)
			if err == nil {
				stored(t)
			}
			return err
		}
	} else {
		var mine bool
		if end, mine = spool.turn(); !mine {
			return taken, nil
		}
	}
	stored, err := within(ctx, o.DB, clean.ID, work, end)
	switch {
	case err == nil && stored.Message != "":
		taken.Spooled, taken.Duplicate, taken.Write, taken.Enqueue = false, stored.Duplicate, stored.Write, stored.Enqueue
	case unspooled != nil:
		return taken, fmt.Errorf("the event is lost: %w", errors.Join(unspooled, err))
	case err != nil:
		o.Logger.Warn("event waits in the spool", "file", file, "error", err)
	}
	return taken, nil
}

// within works on the store until it is done or ctx ends, and tells of the event with an id if it was stored.
func within(ctx context.Context, path, id string, work func(db *records.Database, stored func(Taken)) error, end func()) (Taken, error) {
	type outcome struct {
		taken Taken
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer end()
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("panic: %v", p)
			}
			done <- o
		}()
		db, err := open(ctx, path)
		if err != nil {
			o.err = err
			return
		}
		err = work(db, func(t Taken) {
			if t.Message == id {
				o.taken = t
			}
		})
		o.err = errors.Join(err, db.Close())
	}()
	select {
	case o := <-done:
		return o.taken, o.err
	case <-ctx.Done():
		return Taken{}, fmt.Errorf("the store did not take it within %s: %w", Window, context.Cause(ctx))
	}
}

// open opens the file if it is there: to make it takes longer than a caller may wait.
func open(ctx context.Context, path string) (*records.Database, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; `conversations prepare` makes it", err)
	}
	return records.OpenBriefly(ctx, path, stages.Checker{}, Window)
}

// Store removes from an event what must not be stored, and stores the rest together with the job that validates it.
func Store(ctx context.Context, db *records.Database, e Event, hashKey []byte) (Taken, error) {
	clean, taken := sanitize(e, hashKey)
	if err := ready(ctx, db); err != nil {
		return taken, err
	}
	stored, err := store(ctx, db, clean)
	taken.Duplicate, taken.Write, taken.Enqueue = stored.Duplicate, stored.Write, stored.Enqueue
	return taken, err
}

// sanitize removes from an event what must not be stored.
func sanitize(e Event, hashKey []byte) (sanitized, Taken) {
	taken := Taken{Conversation: e.Conversation, Message: e.ID, Removed: make(map[string]int)}
	began := time.Now()
	clean, found := scrub.New(scrub.Options{}).Scrub(strings.ToValidUTF8(e.Content, "\uFFFD"))
	taken.Sanitize = time.Since(began)
	removals := removalsOf(e, found, hashKey)
	for _, r := range removals {
		taken.Removed[r.Category]++
	}
	return sanitized{
		ID: e.ID, Conversation: e.Conversation, Name: e.Name, Role: e.Role, Content: clean, Version: Version, At: began, Removals: removals,
	}, taken
}

// store stores an event together with the job that validates it.
func store(ctx context.Context, db *records.Database, e sanitized) (Taken, error) {
	taken := Taken{Conversation: e.Conversation, Message: e.ID}
	job, err := stages.NewValidation(e.Conversation, e.Version)
	if err != nil {
		return taken, err
	}
	began := time.Now()
	err = db.Transact(ctx, func(tx records.Tx) error {
		added, err := tx.AddMessage(ctx, records.NewMessage{
			ID: e.ID, Conversation: e.Conversation, Event: e.Name, Role: e.Role, Content: e.Content, Version: e.Version, At: e.At,
		}, e.Removals)
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
