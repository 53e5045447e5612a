package sluice

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"time"
)

// Holder is a process that claims jobs or tends them, as it last told the store.
type Holder struct {
	// ID is host:pid:nonce.
	ID string `json:"id"`
	// Role is one of the roles below, Queues those that it claims from.
	Role   string   `json:"role"`
	Queues []string `json:"queues,omitempty"`
	// Slots is how many jobs a worker runs at once, Busy how many it runs; of a dispatcher, how many it has claimed and
	// not handed over yet.
	Slots int `json:"slots,omitempty"`
	Busy  int `json:"busy"`
	// Conditions are what keeps it from parts of its work.
	Conditions []Condition `json:"conditions,omitempty"`
	// Leads are the tasks that it leads: TaskUpkeep, and FollowTask of engines. Client.Holders fills it in.
	Leads []string `json:"leads,omitempty"`

	// Counts says that what it does stands in the statistics. The store fills it in: it is false where the process opened the
	// store without statistics.
	Counts bool `json:"counts"`

	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
}

// HolderSilence is how long a holder may be silent before it is taken for gone.
const HolderSilence = 30 * time.Second

// The roles of holders.
const (
	RoleWorker     = "worker"
	RoleDispatcher = "dispatcher"
	RoleUpkeep     = "upkeep"
	RoleForwarder  = "forwarder"
)

// Trouble says in one line for people what keeps it from its work; empty: nothing does.
func (h Holder) Trouble() string { return Trouble(h.Conditions) }

// Alive reports whether it has told the store of itself within HolderSilence before now, by the store's clock, and the
// store lets it work.
func (h Holder) Alive(now time.Time) bool {
	_, old := h.tooOld()
	return h.heard(now) && !old
}

// heard reports whether it has told the store of itself within HolderSilence before now.
func (h Holder) heard(now time.Time) bool { return now.Sub(h.Seen) <= HolderSilence }

// Silent reports whether Client.Holders found that it does no work: it was killed, stands still, does not reach the store,
// or its program is too old for the schema.
func (h Holder) Silent() bool {
	_, silent := h.Condition("", func(c Condition) bool {
		return c.Kind == ConditionSilent || c.Kind == ConditionLost || c.Kind == ConditionTooOld
	})
	return silent
}

// tooOld is what Store.Holders says of a process whose program is too old for the schema.
func (h Holder) tooOld() (Condition, bool) {
	return h.Condition("", func(c Condition) bool { return c.Kind == ConditionTooOld })
}

// BreakerOpen reports whether it is a dispatcher that leaves a queue alone because the queue's engine cannot be used.
func (h Holder) BreakerOpen(queue string) bool {
	_, open := h.breaker(queue)
	return open
}

// breaker is why a dispatcher leaves a queue alone, if it does because of the engine.
func (h Holder) breaker(queue string) (Condition, bool) {
	if h.Role != RoleDispatcher {
		return Condition{}, false
	}
	return h.Condition(queue, Condition.OfEngine)
}

// Condition returns the first condition of a queue for which a rule holds. No queue: conditions that are about no single one.
func (h Holder) Condition(queue string, which func(Condition) bool) (Condition, bool) {
	for _, c := range h.Conditions {
		if c.Queue == queue && which(c) {
			return c, true
		}
	}
	return Condition{}, false
}

// NewHolderID names a process among all that claim or tend jobs: host:pid:nonce.
func NewHolderID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails: crypto/rand ends the program instead
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(nonce[:]))
}

// Serves reports whether a holder claims from a queue, and was seen lately.
func (h Holder) Serves(queue string, now time.Time) bool {
	return slices.Contains(h.Queues, queue) && h.Alive(now)
}

// Silence says in a sentence for people since when it does no work, and why, as far as that is known.
func (h Holder) Silence(now time.Time) string {
	cause := "it was killed, stands still, or does not reach the store"
	if c, old := h.tooOld(); old {
		cause = c.Text
	}
	return fmt.Sprintf("the process was last heard of at %s, %s ago: %s", instant(h.Seen), now.Sub(h.Seen).Round(time.Second), cause)
}

// instant shows an instant in texts for people.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
