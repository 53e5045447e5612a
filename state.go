package sluice

import "slices"

// State is where a job is in its life. A store keeps only these seven states. Scheduled, ready, retrying and
// blocked are labels that people see; see [Job.Label].
type State string

// The seven states.
const (
	// StateQueued: the job waits until it is due and the limits let it through.
	StateQueued State = "queued"
	// StateClaimed: a holder has the job under a lease.
	StateClaimed State = "claimed"
	// StateDispatched: an engine runs the job, and upkeep follows the run to its end.
	StateDispatched State = "dispatched"
	// StateUncertain: nobody can know whether the run happened. The job waits for a person, and nothing repeats it.
	StateUncertain State = "uncertain"
	// StateCompleted: the work is done.
	StateCompleted State = "completed"
	// StateDead: the job spent its attempts or recoveries, or failed for good. A dead job is a dead letter and
	// waits for a person.
	StateDead State = "dead"
	// StateCancelled: a person, an expiry, a replacement or the failure of an earlier job cancelled the job.
	StateCancelled State = "cancelled"
)

// States lists every state, in the order of a job's life.
func States() []State {
	return []State{StateQueued, StateClaimed, StateDispatched, StateUncertain, StateCompleted, StateDead, StateCancelled}
}

// Finished reports whether a job in this state is history: completed, dead or cancelled.
func (s State) Finished() bool { return s == StateCompleted || s == StateDead || s == StateCancelled }

// Prunable reports whether a person may delete a job in this state: dead or cancelled.
func (s State) Prunable() bool { return s == StateDead || s == StateCancelled }

// Event is a move of a job, or another event in the audit.
type Event string

// The events that move a job. EventEnqueue makes a job, and each other event changes its state; see [Moves].
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

// EventReschedule gives a queued job another due time. It is no move.
const EventReschedule Event = "reschedule"

// Move is one line of the state machine: an event leads from one of some states to another state.
type Move struct {
	// Event is the event of the move.
	Event Event
	From  []State // empty: the job is new
	To    State   // the new state
	When  string  // the condition, for people
}

// moves is the whole state machine. No other place holds it.
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

// Moves returns the state machine, line by line. Stores refuse every other move. The guards of their SQL statements
// and the tables of docs/states.md come from it.
func Moves() []Move { return slices.Clone(moves[:]) }

// MoveOf returns the line of [Moves] for an event. For another event it returns the zero Move, which no state
// allows.
func MoveOf(event Event) Move {
	for _, m := range moves {
		if m.Event == event {
			return m
		}
	}
	return Move{}
}

// Resolution returns the move by which a person ends an uncertain job with an outcome. False: no move does.
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

// Notable reports whether the audit of every queue has this move: the unusual moves, and most moves that persons
// make.
func (e Event) Notable() bool {
	switch e {
	case EventRecover, EventDoubt, EventBury, EventCancel, EventRequeue, EventUndo:
		return true
	}
	return false
}
