// Package presence knows the processes that work on a store: what each does, what keeps it from its work, and which leads a
// task that one process does at a time.
//
// Begin with [Holders] and [Tasks]. [Store] is the port that SQLite, PostgreSQL and memory implement.
//
// Read next: package explain, which says why a job does not run.
package presence

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Holder is a process that claims or maintains jobs, by its last heartbeat.
type Holder struct {
	// ID is host:pid:nonce.
	ID string `json:"id"`
	// Role is one of the roles below. Queues are those that the process claims from.
	Role   string   `json:"role"`
	Queues []string `json:"queues,omitempty"`
	// Slots is how many jobs a worker runs at once. Busy is how many it runs now; of a dispatcher, how many it has claimed and
	// not yet started.
	Slots int `json:"slots,omitempty"`
	Busy  int `json:"busy"`
	// Conditions keep the process from parts of its work.
	Conditions []Condition `json:"conditions,omitempty"`
	// Leads are the tasks that the process leads: TaskUpkeep, and FollowTask of engines. [Holders] fills it in.
	Leads []string `json:"leads,omitempty"`

	// Counts says that the process counts its work in the statistics. The store fills it in. False: the process opened the
	// store without statistics.
	Counts bool `json:"counts"`

	// Version is the version of the program. Protocol is the [Protocol] of its library; 0: it does not say.
	Version  string `json:"version"`
	Protocol int    `json:"protocol,omitempty"`
	// Mode says whether the process claims jobs. Instruction is what it was told. [Holders] fills in Instruction; nil: nothing.
	Mode        Mode         `json:"mode,omitempty"`
	Instruction *Instruction `json:"instruction,omitempty"`

	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
}

// Mode says whether a process claims jobs.
type Mode string

// The modes. An empty mode counts as [ModeWorking].
const (
	// ModeWorking: the process claims jobs.
	ModeWorking Mode = "working"
	// ModeQuiesced: the process claims nothing, because somebody told it to. It may still run jobs that it has.
	ModeQuiesced Mode = "quiesced"
	// ModeStopping: the process claims nothing, and ends when it has finished what it has.
	ModeStopping Mode = "stopping"
)

// Claims reports whether a process in the mode may claim jobs.
func (m Mode) Claims() bool { return m != ModeQuiesced && m != ModeStopping }

// Protocol is the version of the rules by which processes share a store, beside its schema. A release raises it if its
// processes rely on what older ones do not do. Version 1 obeys instructions.
const Protocol = 1

// ProgramVersion returns the version of the running program: its module's version, or its commit. Empty: neither is known.
func ProgramVersion() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), commitDigits)]
		}
	}
	return info.Main.Version
}

// commitDigits is how much of a commit names a version.
const commitDigits = 12

// Silence is how long after its last heartbeat a holder counts as gone.
const Silence = 30 * time.Second

// The roles of holders.
const (
	RoleWorker     = "worker"
	RoleDispatcher = "dispatcher"
	RoleUpkeep     = "upkeep"
	RoleForwarder  = "forwarder"
)

// Summary returns the conditions in one line. Empty: there are none.
func (h Holder) Summary() string { return Summary(h.Conditions) }

// Alive reports whether the process sent a heartbeat within Silence before now, by the store's clock, and the store accepts
// its calls.
func (h Holder) Alive(now time.Time) bool {
	_, old := h.tooOld()
	return h.heard(now) && !old
}

// heard reports whether the process sent a heartbeat within Silence before now.
func (h Holder) heard(now time.Time) bool { return now.Sub(h.Seen) <= Silence }

// Silent reports whether [Holders] found that the process does no work: somebody killed it, it stands still, it does not reach
// the store, or its program is too old for the schema.
func (h Holder) Silent() bool {
	_, silent := h.Condition("", func(c Condition) bool {
		return c.Kind == ConditionSilent || c.Kind == ConditionLost || c.Kind == ConditionTooOld
	})
	return silent
}

// tooOld returns the condition that the store adds to a process whose program is too old for the schema.
func (h Holder) tooOld() (Condition, bool) {
	return h.Condition("", func(c Condition) bool { return c.Kind == ConditionTooOld })
}

// BreakerOpen reports whether the process is a dispatcher that claims nothing from a queue, because it cannot use the engine.
func (h Holder) BreakerOpen(queue string) bool {
	_, open := h.breaker(queue)
	return open
}

// breaker returns the condition for which a dispatcher claims nothing from a queue.
func (h Holder) breaker(queue string) (Condition, bool) {
	if h.Role != RoleDispatcher {
		return Condition{}, false
	}
	return h.Condition(queue, Condition.OfEngine)
}

// Condition returns the first matching condition of a queue. Empty queue: conditions without a queue.
func (h Holder) Condition(queue string, which func(Condition) bool) (Condition, bool) {
	for _, c := range h.Conditions {
		if c.Queue == queue && which(c) {
			return c, true
		}
	}
	return Condition{}, false
}

// NewID returns a new id for this process: host:pid:nonce.
func NewID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails: crypto/rand ends the program instead
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(nonce[:]))
}

// Serves reports whether the process is alive and claims from a queue. A quiesced process does not.
func (h Holder) Serves(queue string, now time.Time) bool {
	return slices.Contains(h.Queues, queue) && h.Mode.Claims() && h.Alive(now)
}

// Takes reports whether the process is alive and takes the jobs of a queue: workers those of queues without an engine,
// dispatchers those of queues with one, and upkeep those of Sluice's own queues.
func (h Holder) Takes(q sluice.Queue, now time.Time) bool {
	if sluice.IsInternalQueue(q.Name) {
		return h.Role == RoleUpkeep && h.Mode.Claims() && h.Alive(now)
	}
	return h.Serves(q.Name, now) && (h.Role == RoleDispatcher) == (q.Settings.Engine != "")
}

// Silence returns a sentence for people: since when the process does no work, and why, if known.
func (h Holder) Silence(now time.Time) string {
	cause := "it was killed, stands still, or does not reach the store"
	if c, old := h.tooOld(); old {
		cause = c.Text
	}
	return fmt.Sprintf("the process was last heard of at %s, %s ago: %s", feature.InstantText(h.Seen), now.Sub(h.Seen).Round(time.Second), cause)
}
