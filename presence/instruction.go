package presence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Wanted is what a person wants a process to do.
type Wanted string

// The kinds of instructions.
const (
	// WantedWork: the process claims jobs. Processes without an instruction do so too.
	WantedWork Wanted = "work"
	// WantedQuiesce: the process claims nothing new, and finishes what it has. An upkeep gives up what it leads.
	WantedQuiesce Wanted = "quiesce"
	// WantedStop: the process drains as at SIGTERM. Then its Run returns a [StoppedError].
	WantedStop Wanted = "stop"
)

// Target names the processes that an instruction is for: one holder, all of a version, or all.
type Target struct {
	// Holder is the id of one process. Version chooses all processes of a version of your program, and All every process.
	// Exactly one of the three is set. A process of the version that starts later is chosen too.
	Holder  string `json:"holder,omitempty"`
	Version string `json:"version,omitempty"`
	All     bool   `json:"all,omitempty"`
}

// Chooses reports whether the target names a process.
func (t Target) Chooses(h Holder) bool {
	switch {
	case t.All:
		return true
	case t.Holder != "":
		return t.Holder == h.ID
	}
	return t.Version != "" && t.Version == h.Version
}

// The scopes of targets, as SQL stores keep them.
const (
	scopeHolder  = "holder"
	scopeVersion = "version"
	scopeAll     = "all"
)

// Row returns the target as SQL stores keep it: its scope, and the holder or the version.
func (t Target) Row() (scope, name string) {
	switch {
	case t.All:
		return scopeAll, ""
	case t.Holder != "":
		return scopeHolder, t.Holder
	}
	return scopeVersion, t.Version
}

// TargetFromRow reads the values of Row.
func TargetFromRow(scope, name string) Target {
	switch scope {
	case scopeAll:
		return Target{All: true}
	case scopeHolder:
		return Target{Holder: name}
	}
	return Target{Version: name}
}

// String returns the target in words, such as `version 1.4.0`.
func (t Target) String() string {
	scope, name := t.Row()
	if name == "" {
		return scope
	}
	return scope + " " + name
}

// flags returns the target as arguments of `sluice holders`.
func (t Target) flags() string {
	switch {
	case t.All:
		return "--all"
	case t.Holder != "":
		return t.Holder
	}
	return "--version " + t.Version
}

// maxName is the most bytes of the name in a target.
const maxName = 255

func (t Target) check() error {
	given := 0
	for _, is := range []bool{t.All, t.Holder != "", t.Version != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return feature.Invalid("target", fmt.Sprintf("%d of Holder, Version and All are set; set exactly one", given))
	}
	if _, name := t.Row(); len(name) > maxName || sluice.StoredText(name) != name {
		return feature.Invalid("target", fmt.Sprintf("%.40q must be text of at most %d bytes", name, maxName))
	}
	return nil
}

// Instruction tells processes to quiesce, to stop, or to work again. Each process learns it with its next heartbeat, at most
// 10 s later. Of the instructions that choose a process, the newest counts.
type Instruction struct {
	// Target names the processes, and Wanted what they should do.
	Target Target `json:"target"`
	Wanted Wanted `json:"wanted"`
	// Until is when the instruction ends, by the store's clock. Zero: when a newer one lifts it. An instruction to one process
	// also ends with the process.
	Until time.Time `json:"until,omitzero"`
	// ChangedAt, ChangedBy and Reason say who gave the instruction last, when and why. The store fills them in: no two
	// instructions have the same ChangedAt, and the latest is the newest.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Version counts the instructions to the target. ActID is the act that gave the last one.
	Version int64     `json:"version,omitempty"`
	ActID   sluice.ID `json:"-"`
}

// Quiesces reports whether a process that obeys the instruction claims nothing.
func (i Instruction) Quiesces() bool { return i.Wanted == WantedQuiesce || i.Wanted == WantedStop }

// ends reports whether the instruction has ended.
func (i Instruction) ends(now time.Time) bool { return !i.Until.IsZero() && !i.Until.After(now) }

// String returns the instruction in words: who told whom to do what, when and why.
func (i Instruction) String() string {
	text := fmt.Sprintf("%s told %s to %s at %s", i.ChangedBy, i.Target, i.Wanted, feature.InstantText(i.ChangedAt))
	if !i.Until.IsZero() {
		text += " until " + feature.InstantText(i.Until)
	}
	if i.Reason != "" {
		text += ": " + i.Reason
	}
	return text
}

// Lift returns the command that lifts the instruction.
func (i Instruction) Lift() string {
	return "sluice holders resume " + i.Target.flags() + " --reason WHY"
}

// InstructionFor returns the instruction that counts for a process: the newest that chooses it and has not ended. The zero
// value says that there is none.
func InstructionFor(all []Instruction, h Holder, now time.Time) Instruction {
	var newest Instruction
	for _, i := range all {
		if i.Target.Chooses(h) && !i.ends(now) && i.ChangedAt.After(newest.ChangedAt) {
			newest = i
		}
	}
	return newest
}

// ErrStopped reports that a process ends because somebody told it to. [StoppedError] says who and why.
var ErrStopped = errors.New("told to end")

// StoppedError is the error of Run after [WantedStop], and of a worker's Once that claims nothing because of an instruction.
// A program that gets it should end without failure: a supervisor that starts the process again achieves nothing while the
// instruction counts.
type StoppedError struct{ Instruction Instruction }

// Error says who gave the instruction, and how to lift it.
func (e *StoppedError) Error() string {
	return e.Instruction.String() + " (to lift it: " + e.Instruction.Lift() + ")"
}

// Unwrap returns [ErrStopped].
func (e *StoppedError) Unwrap() error { return ErrStopped }

// Instruct tells processes to quiesce, to stop or to work again. During is how long the instruction counts; 0: until another
// lifts it. The audit has actor and reason, both of which act must give. If an act is sent again, Instruct returns what the
// act stored.
//
// Instruct returns before the processes obey: see [Remains]. A holder that is not listed is an [sluice.ErrNotFound].
// Processes of a version need not run yet.
func Instruct(ctx context.Context, store sluice.Store, target Target, wanted Wanted, during time.Duration, act sluice.Act) (Instruction, error) {
	next := Instruction{Target: target, Wanted: wanted}
	if err := next.check(act); err != nil {
		return Instruction{}, err
	}
	if during < 0 {
		return Instruction{}, feature.Invalid("during", fmt.Sprintf("%s must not be negative", during))
	}
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	port := Given(store)
	if err := known(ctx, port, target); err != nil {
		return Instruction{}, err
	}
	if during > 0 {
		now, err := store.Now(ctx)
		if err != nil {
			return Instruction{}, err
		}
		next.Until = now.Add(during).Truncate(time.Microsecond).UTC()
	}
	for {
		all, err := port.Instructions(ctx)
		if err != nil {
			return Instruction{}, err
		}
		next.Version = 0
		if at := slices.IndexFunc(all, func(i Instruction) bool { return i.Target == target }); at >= 0 {
			next.Version = all[at].Version
		}
		saved, err := port.SaveInstruction(ctx, next, act)
		if errors.Is(err, sluice.ErrConflict) && ctx.Err() == nil {
			continue // another person changed it in between; the newest counts
		}
		return saved, err
	}
}

// Save stores an instruction for a program that only sees the processes through a server. If its version is not that of the stored
// one to the same target, the error is a [sluice.ErrConflict].
func Save(ctx context.Context, store sluice.Store, instruction Instruction, act sluice.Act) (Instruction, error) {
	if err := instruction.check(act); err != nil {
		return Instruction{}, err
	}
	if err := feature.CheckInstant("until", instruction.Until); err != nil {
		return Instruction{}, err
	}
	instruction.Until = feature.Instant(instruction.Until)
	return Given(store).SaveInstruction(ctx, instruction, act)
}

// check returns the rule that an instruction or its act breaks.
func (i Instruction) check(act sluice.Act) error {
	if err := i.Target.check(); err != nil {
		return err
	}
	if !slices.Contains([]Wanted{WantedWork, WantedQuiesce, WantedStop}, i.Wanted) {
		return feature.Invalid("wanted", fmt.Sprintf("%.40q must be work, quiesce or stop", i.Wanted))
	}
	if act.By == "" || act.Reason == "" {
		return feature.Invalid("act", "it must have an actor and a reason")
	}
	return act.Check()
}

// known checks that the one holder of a target is listed.
func known(ctx context.Context, port Store, target Target) error {
	if target.Holder == "" {
		return nil
	}
	holders, err := port.Holders(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(holders, target.Chooses) {
		return fmt.Errorf("holder %q is not listed; see: sluice holders: %w", target.Holder, sluice.ErrNotFound)
	}
	return nil
}

// Instructions lists the instructions that have not ended, the newest first.
func Instructions(ctx context.Context, store sluice.Store) ([]Instruction, error) {
	all, err := Given(store).Instructions(ctx)
	if err != nil {
		return nil, err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i Instruction) bool { return i.ends(now) }), nil
}
