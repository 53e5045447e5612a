package sluice

import "slices"

// State is where a job is in its life. These seven are the only ones a store keeps; scheduled,
// ready, retrying and blocked are labels that people are shown (see Job.Label).
type State string

// The seven states.
const (
	// StateQueued: it waits until it is due and let through.
	StateQueued State = "queued"
	// StateClaimed: a holder has it under a lease.
	StateClaimed State = "claimed"
	// StateDispatched: an engine runs it under its ref, and upkeep follows the run to its end.
	StateDispatched State = "dispatched"
	// StateUncertain: whether its run happened can no longer be known. It is never repeated by itself.
	StateUncertain State = "uncertain"
	// StateCompleted: it was done.
	StateCompleted State = "completed"
	// StateDead: attempts or recoveries are spent, or the error is permanent. A dead job is a dead letter.
	StateDead State = "dead"
	// StateCancelled: a person, an expiry or a replacement ended it.
	StateCancelled State = "cancelled"
)

// States lists every state, in the order of a job's life.
func States() []State {
	return []State{StateQueued, StateClaimed, StateDispatched, StateUncertain, StateCompleted, StateDead, StateCancelled}
}

// Finished reports whether a job in this state is history.
func (s State) Finished() bool { return s == StateCompleted || s == StateDead || s == StateCancelled }

// Prunable reports whether a person may have a job in this state deleted.
func (s State) Prunable() bool { return s == StateDead || s == StateCancelled }

// Event is what moves a job from one state to another.
type Event string

// The events. Enqueue makes a job; each of the others moves one (see Moves).
const (
	EventEnqueue  Event = "enqueue"
	EventClaim    Event = "claim"
	EventDispatch Event = "dispatch"
	EventComplete Event = "complete"
	EventRetry    Event = "retry"
	EventRelease  Event = "release"
	EventRecover  Event = "recover"
	EventDoubt    Event = "doubt"
	EventBury     Event = "bury"
	EventCancel   Event = "cancel"
	EventRequeue  Event = "requeue"
	EventUndo     Event = "undo"
)

// EventReschedule is no move: a waiting job got another due_at.
const EventReschedule Event = "reschedule"

// Move is one line of the state machine: an event leads from one of some states to another.
type Move struct {
	Event Event
	From  []State // empty: the job is new
	To    State
	When  string
}

// moves is the whole state machine, and the only place that holds it.
var moves = [...]Move{
	{EventEnqueue, nil, StateQueued, "a producer asked for it"},
	{EventClaim, []State{StateQueued}, StateClaimed, "it is due, and its queue is open"},
	{EventDispatch, []State{StateClaimed}, StateDispatched, "the engine has the run"},
	{EventComplete, []State{StateClaimed, StateDispatched, StateUncertain}, StateCompleted, "the handler returned nil, the run ended well, or a person knows that it did"},
	{EventRetry, []State{StateClaimed, StateDispatched}, StateQueued, "the attempt failed and attempts remain; due after the backoff"},
	{EventRelease, []State{StateClaimed}, StateQueued, "handed back and not counted as an attempt: shutdown, snooze"},
	{EventRecover, []State{StateClaimed}, StateQueued, "the lease ran out"},
	{EventDoubt, []State{StateClaimed, StateDispatched}, StateUncertain, "whether the run happened can no longer be known"},
	{EventBury, []State{StateClaimed, StateDispatched, StateUncertain}, StateDead, "attempts or recoveries are spent, or the error is permanent"},
	{EventCancel, []State{StateQueued, StateClaimed, StateDispatched}, StateCancelled, "a person, an expiry or a replacement ended it"},
	{EventRequeue, []State{StateDead, StateCancelled, StateUncertain}, StateQueued, "a person gives it a new life: the next generation"},
	{EventUndo, []State{StateQueued}, StateDead, "a person undoes the requeue of a dead job, before anybody has claimed it"},
}

// Moves gives the state machine, line by line. The stores take the guards of their statements from
// it, the documented table and drawing are made from it, and a store refuses every other move.
func Moves() []Move { return slices.Clone(moves[:]) }

// MoveOf gives the line of Moves for an event. An event that is not in Moves gives the zero Move,
// which no state may take.
func MoveOf(event Event) Move {
	for _, m := range moves {
		if m.Event == event {
			return m
		}
	}
	return Move{}
}

// Resolution is the move by which a person ends an uncertain job with an outcome; false: none leads there.
func Resolution(outcome State) (Move, bool) {
	for _, m := range moves {
		if m.To == outcome && outcome.Finished() && m.Allows(StateUncertain) {
			return m, true
		}
	}
	return Move{}, false
}

// Allows reports whether a job in this state may make the move.
func (m Move) Allows(from State) bool { return slices.Contains(m.From, from) }

// Notable reports whether the audit tells of this move in every queue: the moves out of the
// ordinary, and those that persons make.
func (e Event) Notable() bool {
	switch e {
	case EventRecover, EventDoubt, EventBury, EventCancel, EventRequeue, EventUndo:
		return true
	}
	return false
}
