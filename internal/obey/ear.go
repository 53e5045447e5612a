// Package obey lets a process obey the instructions that its heartbeats return: quiesce, work again, stop.
//
// Begin with [New]. A process calls [Ear.Hear] with each answer to a heartbeat, and claims only between [Ear.Begin] and
// [Ear.End].
//
// Read next: presence.Instruct, by which a person gives an instruction.
package obey

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

// Ear holds the instruction of one process.
type Ear struct {
	log *event.Log
	// changed gets a value when the mode of the process has changed, so that its heartbeat may say so at once.
	changed chan struct{}

	mu       sync.Mutex
	told     presence.Instruction
	claiming int
	stopping bool
	stop     context.CancelCauseFunc
}

// New returns the ear of a process without an instruction.
func New(log *event.Log) *Ear { return &Ear{log: log, changed: make(chan struct{}, 1)} }

// Draining returns a context for what a process does. It goes on for the time drain after ctx has ended, unless end is called
// before.
func Draining(ctx context.Context, drain time.Duration) (work context.Context, end func()) {
	work, quit := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drain, quit) })
	return work, func() { stop(); quit() }
}

// Obeying forgets an earlier run of the process, and returns a context that ends with a [presence.StoppedError] as its cause
// when somebody stops the process.
func (e *Ear) Obeying(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told, e.stopping, e.stop = presence.Instruction{}, false, stop
	return ctx, stop
}

// Hear notes the answer to a heartbeat, and logs a change.
func (e *Ear) Hear(told presence.Instruction) {
	e.mu.Lock()
	was := e.told
	e.told = told
	stop := e.stop
	e.mu.Unlock()
	if told.Wanted == was.Wanted || !told.Quiesces() && !was.Quiesces() {
		return
	}
	e.tell(told)
	e.change()
	if told.Wanted == presence.WantedStop && stop != nil {
		stop(&presence.StoppedError{Instruction: told})
	}
}

func (e *Ear) tell(told presence.Instruction) {
	switch told.Wanted {
	case presence.WantedQuiesce:
		e.log.Emit(event.ProcessQuiesced, "", "by", told.ChangedBy, "reason", told.Reason, "lift", told.Lift())
	case presence.WantedStop:
		e.log.Emit(event.ProcessStopped, "", "by", told.ChangedBy, "reason", told.Reason, "lift", told.Lift())
	default:
		e.log.Emit(event.ProcessResumed, "", "by", told.ChangedBy, "reason", told.Reason)
	}
}

// change reports a new mode, if nobody has read the last report yet.
func (e *Ear) change() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// Changed gets a value when the mode has changed, so that the next heartbeat should be sent now.
func (e *Ear) Changed() <-chan struct{} { return e.changed }

// Begin reports whether the process may claim. After true, the process calls [Ear.End] when its claim has returned and its
// jobs are counted as its own.
func (e *Ear) Begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told.Quiesces() {
		return false
	}
	e.claiming++
	return true
}

// End notes the end of a claim.
func (e *Ear) End() {
	e.mu.Lock()
	e.claiming--
	quiet := e.claiming == 0 && e.told.Quiesces()
	e.mu.Unlock()
	if quiet {
		e.change()
	}
}

// Quiesced reports whether the process was told to claim nothing.
func (e *Ear) Quiesced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told.Quiesces()
}

// Stopping notes that the process ends, for whatever reason.
func (e *Ear) Stopping() {
	e.mu.Lock()
	e.stopping = true
	e.mu.Unlock()
	e.change()
}

// Mode returns the mode for a heartbeat. While a claim is under way, a process that was told to claim nothing still works.
func (e *Ear) Mode() presence.Mode {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.claiming > 0:
		return presence.ModeWorking
	case e.stopping || e.told.Wanted == presence.WantedStop:
		return presence.ModeStopping
	case e.told.Quiesces():
		return presence.ModeQuiesced
	}
	return presence.ModeWorking
}

// Refusal returns a [presence.StoppedError] if the process was told to claim nothing.
func (e *Ear) Refusal() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.told.Quiesces() {
		return nil
	}
	return &presence.StoppedError{Instruction: e.told}
}

// Stopped returns the [presence.StoppedError] that ended a context of [Ear.Obeying]. Nil: something else ended it.
func Stopped(ctx context.Context) error {
	if stopped, is := context.Cause(ctx).(*presence.StoppedError); is { //nolint:errorlint // it is the cause itself
		return stopped
	}
	return nil
}
