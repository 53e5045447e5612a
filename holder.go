package sluice

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
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
	// Trouble is what keeps it from its work, for people; empty: nothing does.
	Trouble string `json:"trouble,omitempty"`
	// Leads are the tasks that it leads: TaskUpkeep, and FollowTask of engines. Client.Holders fills it in.
	Leads []string `json:"leads,omitempty"`

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

// BreakerIsOpen begins what the Trouble of a dispatcher says of a queue whose engine cannot be used.
const BreakerIsOpen = "the breaker is open"

// NobodyPolls begins what the Trouble of upkeep says of a queue whose runs no worker of the engine waits for.
const NobodyPolls = "no worker polls task queue"

// TroubleOf is a part of the Trouble of a holder: that of one queue.
func TroubleOf(queue, what string) string { return "queue " + queue + ": " + what }

// JoinTroubles makes the Trouble of a holder of its parts.
func JoinTroubles(parts []string) string { return strings.Join(parts, troubleMark) }

const troubleMark = "; "

// BreakerOpen reports whether it is a dispatcher that leaves a queue alone because the queue's engine cannot be used.
func (h Holder) BreakerOpen(queue string) bool { return h.troubleWith(queue, BreakerIsOpen) != "" }

// troubleWith is the part of its Trouble about a queue that begins with some words; empty: there is none.
func (h Holder) troubleWith(queue, begins string) string {
	for part := range strings.SplitSeq(h.Trouble, troubleMark) {
		if what, of := strings.CutPrefix(part, TroubleOf(queue, "")); of && strings.HasPrefix(what, begins) {
			return what
		}
	}
	return ""
}

// unpolled is what living upkeep says of a queue whose runs no worker waits for; empty: nothing.
func unpolled(holders []Holder, queue string, now time.Time) string {
	for _, h := range holders {
		if h.Role != RoleUpkeep || now.Sub(h.Seen) > HolderSilence {
			continue
		}
		if what := h.troubleWith(queue, NobodyPolls); what != "" {
			return what
		}
	}
	return ""
}

// NewHolderID names a process among all that claim or tend jobs: host:pid:nonce (C-21).
func NewHolderID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails: crypto/rand ends the program instead
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(nonce[:]))
}
