package sluice

import (
	"context"
	"encoding/json"
	"time"
)

// Insert is a checked job on its way into a store. The client has filled in its ID, priority, key scope, duplicate
// rule and failure rule. After is sorted by ID, and has each ID once.
type Insert struct {
	NewJob
	// AuditFull says that the queue audits every move.
	AuditFull bool
	// ByTenant says that the queue serves its tenants in turns. If it is wrong, the store finds out, and the job
	// costs a little more.
	ByTenant bool
	// MaxWaiting, TenantMaxWaiting and Shed are the queue's settings; see package pressure.
	MaxWaiting, TenantMaxWaiting int
	Shed                         bool
	// Known says that the queue was stored when the client read its settings. If one queue of a batch was deleted
	// since, the store returns [ErrQueueGone] for the whole batch.
	//
	// Inside a transaction of the caller Known is false: upkeep makes the settings of such a queue.
	Known bool
}

// Enqueuer stores jobs by the settings of their queues. It is a [Store], or a transaction of the caller. An
// Enqueuer of a transaction must use no other connection.
type Enqueuer interface {
	// Enqueue stores jobs in one transaction, each behind the jobs of the batch that it runs after. A job whose ID
	// or key is taken becomes a duplicate, and does not fail the other jobs.
	//
	// A job that runs after an unknown job fails alone: the error is a [*BatchError], and the other jobs are
	// stored.
	Enqueue(ctx context.Context, jobs []Insert) ([]Receipt, error)
	// Queues lists queues with their settings, sorted by name. It leaves out unknown names.
	Queues(ctx context.Context, filter QueueFilter) ([]Queue, error)
	// Now reads the store's clock. No other verb costs less.
	Now(ctx context.Context) (time.Time, error)
	// Admit admits new queues. It returns one error per queue: nil, an *admission.UnknownQueueError or a
	// *admission.QueueLimitError; see package admission. It always admits a stored queue. Each name occurs once, and the
	// first names come first.
	//
	// A Store makes the new queues with the settings of their groups or the defaults, in one transaction. A transaction of the caller only
	// returns the errors, and upkeep makes the queues later.
	Admit(ctx context.Context, queues []string, act Act) ([]error, error)
}

// QueueFilter chooses queues. The zero value chooses all, which takes long with thousands of queues. A program that
// works for some queues should name them.
type QueueFilter struct {
	// Names chooses queues by their names. Default: all.
	Names []string
	// Engines chooses queues with one of these engines. Default: all.
	Engines []string
	// Engined chooses queues that have an engine, or have jobs at an engine. Default: all.
	Engined bool
	// Groups also chooses groups; see [IsGroup]. Default: groups that Names names.
	Groups bool
	// After chooses queues whose names sort after this name. Default: all.
	After string
	// Limit is the most queues, the first by name. Default: all. A negative Limit also means all.
	Limit int
}

// Store keeps the jobs. It is the port that SQLite, PostgreSQL and memory implement. Package store/storetest holds
// the rules that every store obeys, in plain sentences.
//
// The methods are the verbs of a job's life, in batches. Each moves a job only from a state that [Moves] allows. If
// a holder has the job, the holder's token must prove the claim.
//
// Each method has a deadline, retries transient faults, and recognises its own work after a lost answer. You can
// repeat Enqueue, Settle, the saves and the acts with the same IDs, tokens and act ID: the store then repeats nothing.
//
// A store that is out of reach returns [ErrUnavailable], never an empty answer. A slice of errors has one entry per
// item, nil for success.
type Store interface {
	Enqueuer

	// Look returns, by queue, how long until its first waiting job is due, by the store's clock. 0 or less: now. It
	// leaves out a queue without a waiting job, and a queue that is paused without an end.
	//
	// Look ignores limits, so a claim may get fewer jobs than Look promises, but never more. It is one query for
	// any number of queues, and costs less than a claim.
	NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error)
	// Claim hands out due jobs, by priority, then the longest due first.
	Claim(ctx context.Context, request ClaimRequest) (Claimed, error)
	// Renew extends claims, and returns the jobs that their holder has lost. The SQL stores do not write a claim
	// with more than two thirds of its lease left, so frequent renewals cost little.
	Renew(ctx context.Context, renewals []Renewal) (lost []ID, err error)
	// SaveCheckpoint saves the progress of a claimed job. An old token is an [ErrLost]. A checkpoint of more than
	// [MaxResultBytes] is an [ErrInvalid].
	SaveCheckpoint(ctx context.Context, id ID, token Token, checkpoint json.RawMessage) error
	// Settle writes how the runs of claimed jobs ended. An old token is an [ErrLost], and the audit keeps it. A
	// move that the state machine lacks is an [ErrNotAllowed].
	Settle(ctx context.Context, settlements []Settlement) ([]error, error)

	// Cancel cancels queued, claimed and dispatched jobs. An unknown job is an [ErrNotFound], any other an
	// [ErrNotAllowed].
	Cancel(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Requeue gives dead, cancelled and uncertain jobs a new life, due now. If another unfinished job has the key,
	// the error is an [ErrDuplicate]. A job with orphan runs is blocked by itself until the last of them is
	// forgotten, unless the act sets BesideOpenRun.
	//
	// With Undo in the act, Requeue ends queued jobs instead, with the outcome and the data of the life before. A
	// job is an [ErrNotAllowed] if it was claimed since, or if no finished life before it is known.
	Requeue(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Resolve ends uncertain jobs by the move that [Resolution] returns for the outcome, and counts no attempt. An
	// unknown job is an [ErrNotFound], a job that is not uncertain an [ErrNotAllowed]. A dead job gets an error
	// text with By and Reason of the act.
	Resolve(ctx context.Context, ids []ID, outcome State, act Act) ([]error, error)
	// Terminate marks the orphan runs of jobs, so that upkeep terminates them. An unknown job without an orphan run
	// is an [ErrNotFound], a known one an [ErrNotAllowed].
	Terminate(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Reschedule changes the due time of queued jobs. A zero time means now. A job that would expire before it is due
	// is an [ErrInvalid], an unknown one an [ErrNotFound], any other an [ErrNotAllowed].
	Reschedule(ctx context.Context, ids []ID, dueAt time.Time, act Act) ([]error, error)

	// DeleteJobs deletes dead and cancelled jobs now, as the act of a person, whatever the settings keep. It
	// cancels jobs that wait until one is requeued. An unknown job is an [ErrNotFound], any other an [ErrNotAllowed].
	DeleteJobs(ctx context.Context, ids []ID, act Act) ([]error, error)

	// Recover requeues jobs of a queue whose lease ran out, at most limit. It buries a job that has lost
	// max_recoveries holders. It skips jobs with an intended run; see Dispatches of engine.Store.
	Recover(ctx context.Context, queue string, limit int, by string) (Recovered, error)
	// Expire cancels queued jobs whose ExpiresAt has passed, at most limit. It returns how many.
	Expire(ctx context.Context, limit int, by string) (int, error)
	// Repair repairs rows that no other verb cares for, and returns how many. It makes the settings of queues that
	// have jobs and no settings, whatever package admission allows. It frees jobs whose blocker is gone.
	//
	// Without counting it, Repair also does the work that claims leave undone in queues from which nobody claims.
	Repair(ctx context.Context, by string) (int, error)
	// Prune deletes finished jobs that their queue's settings keep no longer, and keys whose window has passed. It
	// deletes at most limit of each, and fewer if that many would block others.
	//
	// An empty after begins a pass. Each next call continues at the Next of the call before, and skips jobs that
	// are kept longer. The last call of a pass also forgets idle tenants among the next limit tenants with a turn
	// in a queue.
	Prune(ctx context.Context, after string, limit int) (Pruned, error)

	// Job returns a job with its payload. An unknown ID is an [ErrNotFound].
	Job(ctx context.Context, id ID) (Job, error)
	// Attempts lists the failed attempts of a job, the oldest first.
	Attempts(ctx context.Context, id ID) ([]Attempt, error)
	// Jobs lists jobs without their payloads.
	Jobs(ctx context.Context, filter JobFilter) (Page, error)
	// Flows returns the [Flow] of every stored queue, by name, with at most topTenants tenants each.
	Flows(ctx context.Context, topTenants int) ([]Flow, error)
	// Depth counts the jobs of a queue. Each count is at most limit, which bounds the cost.
	Depth(ctx context.Context, queue string, limit int) (Depth, error)
	// Audit lists audit entries, the newest first.
	Audit(ctx context.Context, filter AuditFilter) ([]AuditEntry, error)
	// AppendAudit adds entries to the audit, all of them or none, with the time of the store's clock. An entry that
	// fails [AuditEntry.CheckAppended] is an [ErrInvalid]. Entries that are sent twice are in the audit twice, even
	// after a lost answer.
	AppendAudit(ctx context.Context, entries []AuditEntry) error

	// SaveQueue stores a queue's settings and scheduled changes, with an audit entry. Version must be the stored queue's, or 0
	// for a new queue, else the error is an [ErrConflict]. If somebody changed the settings by plain SQL before,
	// SaveQueue adds an entry for that change too.
	//
	// A changed group changes its queues in the same transaction; see [IsGroup].
	//
	// A new queue that package admission refuses is an *admission.UnknownQueueError or a *admission.QueueLimitError. The limit is
	// exact with any number of processes.
	SaveQueue(ctx context.Context, queue Queue, act Act) (Queue, error)
	// RecordQueueChange adds an audit entry for a change of a queue's settings by plain SQL: from the settings of
	// the last entry to queue.Settings. Version must be the stored queue's, else the error is an [ErrConflict]. The
	// new Version is 1 higher.
	RecordQueueChange(ctx context.Context, queue Queue, act Act) (Queue, error)
	// DeleteQueue deletes a queue that holds nothing. It keeps only the audit, the statistics, the grants of roles,
	// and the keys that outlive their jobs. A queue that holds anything is a [*QueueNotEmptyError], an unknown
	// queue an [ErrNotFound].
	DeleteQueue(ctx context.Context, name string, act Act) error

	// Watch calls signal for jobs that became due to claim, and for claims that somebody cancelled. It returns nil
	// when ctx ends. Signals may be lost, so callers must also poll.
	Watch(ctx context.Context, signal func(Signal)) error

	// Close frees the resources of the store. Calls under way end with [ErrUnavailable].
	Close() error
}

// Recovered is the result of Recover of [Store].
type Recovered struct {
	// Requeued counts jobs that wait again. Buried counts jobs that lost max_recoveries holders.
	Requeued int
	Buried   int
}

// Pruned is the result of Prune of [Store].
type Pruned struct {
	// Deleted counts the deleted jobs.
	Deleted int
	// Next is the after of the next call. Empty: the pass has ended.
	Next string
}

// Signal makes a worker look for jobs now instead of at its next poll.
type Signal struct {
	// Queue has jobs to claim. Empty: any queue may have some.
	Queue string
	// Cancelled is a claimed job that somebody cancelled. Zero: none.
	Cancelled ID
	// Ended is an awaited job that has ended; see package await. Zero: none.
	Ended ID
	// Hearing says how far the receiver may rely on signals from now on. Empty: no change. Until the first
	// HearsAll, assume HearsLess.
	Hearing Hearing
}

// Hearing says how far a store hears the signals of other processes.
type Hearing string

// The values of Hearing.
const (
	// HearsAll: the store signals every change that a program of Sluice makes, within milliseconds.
	HearsAll Hearing = "all"
	// HearsLess: the store may miss signals of other processes.
	HearsLess Hearing = "less"
)

// Migration is a numbered step of a store's schema, or an object that the store makes after the steps, such as a
// view.
type Migration struct {
	// Version is the number of the step, from 1. 0: not a step; the store makes it again whenever its text changes.
	Version int
	// Name names the step.
	Name string
	// SQL is the text that the step runs.
	SQL string
	// WorksFrom is the newest step that a program must know to work on a database after this step. It lets old and
	// new programs run side by side during an upgrade.
	WorksFrom int
	// Checksum shows whether the step was changed after the store applied it.
	Checksum string
}
