package sluice

import (
	"context"
	"encoding/json"
	"time"
)

// Insert is a job on its way into a store: checked, and with its id, priority, key scope, duplicate
// rule and failure rule filled in. The jobs that it is to run after are sorted by id, each once.
type Insert struct {
	NewJob
	// AuditFull says that the queue audits every move.
	AuditFull bool
	// ByTenant says that the queue serves its tenants in turns. A store finds out if it is wrong; then
	// the job costs a little more.
	ByTenant bool
	// Known says that the queue was stored when its settings were read. If one of a batch was deleted since, the whole batch
	// is an ErrQueueGone. Inside a transaction of the caller's own it is not said: upkeep gives such a queue its settings.
	Known bool
}

// Enqueuer stores jobs by the settings of their queues: a Store, or a transaction of the caller's own,
// which must not need another connection than the transaction's.
type Enqueuer interface {
	// Enqueue stores jobs, in one transaction. Jobs whose id or key is taken become duplicates;
	// they do not fail the others. A job comes behind those of the batch that it is to run after; one
	// that names a job which is not stored fails alone: the error is then a *BatchError, and the
	// others are stored.
	Enqueue(ctx context.Context, jobs []Insert) ([]Receipt, error)
	// Queues lists queues with their settings, by name. Names that are not stored are left out.
	Queues(ctx context.Context, filter QueueFilter) ([]Queue, error)
	// Now reads the store's clock. It costs less than every other question.
	Now(ctx context.Context) (time.Time, error)
	// Admit makes room for jobs that name queues, of which none need be stored and each is given once. A Store stores those
	// that are new in one transaction, with the default settings; a transaction of the caller's own only says which may be,
	// and upkeep stores them later. A queue that is stored is always admitted; another one may be refused by an
	// *UnknownQueueError or a *QueueLimitError, see package admission. The first of the slice come first.
	Admit(ctx context.Context, queues []string, act Act) ([]error, error)
}

// QueueFilter chooses queues. The zero value chooses all, which with thousands of queues takes long; a program that works
// for some of them names those.
type QueueFilter struct {
	// Names chooses queues by their names. Default: all.
	Names []string
	// Engines chooses queues whose setting `engine` is one of these. Default: all.
	Engines []string
	// Engined chooses queues that name an engine, or that have jobs at one. Default: all.
	Engined bool
	// After chooses queues whose names come after this one. Default: all.
	After string
	// Limit is how many are given at the most, the first by name. Default, and less than nothing: all.
	Limit int
}

// Store keeps the jobs. It is the port that SQLite, PostgreSQL and memory implement; package
// storetest holds the rules that each obeys, in plain sentences.
//
// Its methods are the verbs of a job's life, in batches. Each is one guarded step: it moves a job
// only from a state that Moves allows and, where the caller holds the job, only for its token.
// Each has a deadline, tries transient faults again, and knows its own work again when an answer was
// lost. Enqueue, Settle and the acts may also be called again with the same ids, tokens and act id:
// they then find what they did before. A store that cannot be reached gives ErrUnavailable, never an
// empty answer. Where a method returns a slice of errors, it has
// one entry per item, nil for each that succeeded.
type Store interface {
	Enqueuer

	// Look tells of queues, by name, how long until the first of their waiting jobs is due, by the store's clock: 0 or less if
	// it is due now. A queue with no waiting job is left out, and so is one that is paused without an end. Limits are not
	// looked at, so that a claim may get less than Look promises, and never more. It is one question however many queues
	// are asked of, and costs less than a claim.
	Look(ctx context.Context, queues []string) (map[string]time.Duration, error)
	// Claim hands out jobs that are due, the lowest priority figure first and then the longest
	// due.
	Claim(ctx context.Context, request ClaimRequest) (Claimed, error)
	// Renew gives claims more time and returns those that their holder has lost. A claim that has
	// more than two thirds of its lease left is only looked at, so that asking often costs little.
	Renew(ctx context.Context, renewals []Renewal) (lost []ID, err error)
	// SaveCheckpoint keeps how far a claimed job has come. It is an ErrLost for an old
	// token, and an ErrInvalid for a checkpoint of more than MaxResultBytes.
	SaveCheckpoint(ctx context.Context, id ID, token Token, checkpoint json.RawMessage) error
	// Settle writes what became of claimed jobs. An old token gives ErrLost and is audited, a move
	// that the state machine does not have gives ErrNotAllowed.
	Settle(ctx context.Context, settlements []Settlement) ([]error, error)

	// Cancel ends unfinished jobs: ErrNotFound for an unknown one, ErrNotAllowed for a finished.
	Cancel(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Requeue gives dead, cancelled and uncertain jobs a new life, due now. It is an
	// ErrDuplicate where another unfinished job holds the job's key. A job of which stray runs are listed waits for itself
	// until the last of them is forgotten, unless the act says BesideOpenRun. An act that says Undo ends queued jobs
	// instead, by UndoneMove, as the life before the present one ended, with what is known of that: ErrNotAllowed for one
	// whose life before was no finished one or is not known any more, and for one that was claimed since.
	Requeue(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Resolve ends uncertain jobs by the move that Resolution gives for the outcome, which must have one, and counts no
	// attempt: ErrNotFound for an unknown job, ErrNotAllowed for one that is not uncertain. A dead one has ResolvedError.
	Resolve(ctx context.Context, ids []ID, outcome State, act Act) ([]error, error)
	// Terminate marks the stray runs of jobs, so that upkeep ends them by force: ErrNotFound for an unknown job of which
	// none is listed, ErrNotAllowed for a known one.
	Terminate(ctx context.Context, ids []ID, act Act) ([]error, error)
	// Reschedule changes when queued jobs are due; a zero time means now.
	Reschedule(ctx context.Context, ids []ID, dueAt time.Time, act Act) ([]error, error)

	// DeleteJobs deletes dead and cancelled jobs now, as a person's act, whatever their queue keeps.
	DeleteJobs(ctx context.Context, ids []ID, act Act) ([]error, error)

	// Recover requeues jobs of a queue whose lease ran out, at most limit, and buries those that
	// have lost max_recoveries holders. It leaves those alone of which a run is intended: see Dispatches.
	Recover(ctx context.Context, queue string, limit int, by string) (Recovered, error)
	// Expire cancels queued jobs whose expires_at has passed, at most limit.
	Expire(ctx context.Context, limit int, by string) (int, error)
	// Repair finds what no other verb looks after: jobs of queues that have no settings, which it makes whatever the
	// policy of package admission says, and blocked jobs whose blocker is gone. It returns how many rows it set right. Beside that, and uncounted, it
	// does what claims leave undone in queues from which nobody claims.
	Repair(ctx context.Context, by string) (int, error)
	// Prune deletes finished jobs that were kept as long as their queue's settings ask, and keys whose window has passed:
	// at most limit of each, and fewer where that many would hold up others. It goes on after the place that the call
	// before it returned, and looks at no job that is kept longer. An empty after begins a pass. The last call of a pass
	// also looks at the next limit tenants that have a turn in a queue, and forgets those of which nothing would be lost.
	Prune(ctx context.Context, after string, limit int) (Pruned, error)

	// Job looks one job up, payload and all. An unknown id is an ErrNotFound.
	Job(ctx context.Context, id ID) (Job, error)
	// Attempts lists a job's failed attempts, the oldest first.
	Attempts(ctx context.Context, id ID) ([]Attempt, error)
	// Jobs lists jobs, the newest first, without their payloads.
	Jobs(ctx context.Context, filter JobFilter) (Page, error)
	// Flows tells what lets jobs through in every stored queue, by name, each with at most so many tenants.
	Flows(ctx context.Context, topTenants int) ([]Flow, error)
	// Depth counts the jobs of a queue, each figure at most limit, which bounds the cost.
	Depth(ctx context.Context, queue string, limit int) (Depth, error)
	// Audit lists what was done, the newest first.
	Audit(ctx context.Context, filter AuditFilter) ([]AuditEntry, error)
	// Note adds entries to the audit that tell of no move, all of them or none; one that tells of a move, or of nothing,
	// is an ErrInvalid. When it was done is by the store's clock. Entries that are sent twice, also because an answer
	// was lost, are there twice.
	AppendAudit(ctx context.Context, entries []AuditEntry) error

	// SaveQueue stores a queue's settings and plans. Version must be that of the stored queue, 0 for a new
	// one, else it is an ErrConflict. It tells the audit also of what was changed by plain SQL before. A new queue that the
	// policy of package admission refuses, exactly with any number of processes, is an *UnknownQueueError or a *QueueLimitError.
	SaveQueue(ctx context.Context, queue Queue, act Act) (Queue, error)
	// RecordQueueChange tells the audit of what was changed in a queue's settings by plain SQL: from what it told
	// last to queue.Settings. Version must be that of the stored queue, which is one higher then, else
	// it is an ErrConflict.
	RecordQueueChange(ctx context.Context, queue Queue, act Act) (Queue, error)
	// DeleteQueue deletes a queue that holds nothing, and all that is stored of it beside the audit, the statistics, the
	// grants of roles and the keys that outlive their jobs. One that holds anything is a *QueueNotEmptyError, an unknown one
	// an ErrNotFound.
	DeleteQueue(ctx context.Context, name string, act Act) error

	// Watch calls signal until ctx ends, and returns nil then: for jobs that became due to claim
	// and for claims that were cancelled. Signals may be missed; polling is what is relied on.
	Watch(ctx context.Context, signal func(Signal)) error

	// Close frees what the store holds. Calls under way end with ErrUnavailable.
	Close() error
}

// Recovered counts what Recover did.
type Recovered struct {
	// Requeued jobs wait again; Buried ones lost max_recoveries holders.
	Requeued int
	Buried   int
}

// Pruned tells how far Prune has come.
type Pruned struct {
	// Deleted counts the jobs that are gone.
	Deleted int
	// Next is where to go on; empty: the pass is over.
	Next string
}

// Signal tells a worker to look now instead of at its next poll.
type Signal struct {
	// Queue has jobs to claim; empty: any queue may have.
	Queue string
	// Cancelled is a job that was cancelled while it was claimed; zero: none was.
	Cancelled ID
	// Hearing tells how far signals are to be relied on from now on. Empty: the signal tells nothing of it. Until a store
	// has said HearsAll, it is to be looked at as if it heard nothing.
	Hearing Hearing
}

// Hearing is how far a store hears the signals of other processes.
type Hearing string

// What a store may say of its hearing.
const (
	// HearsAll: whatever a program of Sluice does in the store is signalled within some milliseconds.
	HearsAll Hearing = "all"
	// HearsLess: signals of other processes may be missing.
	HearsLess Hearing = "less"
)

// Migration is a numbered step of a store's schema, or what is made after the steps.
type Migration struct {
	// Version is the step's number, from 1; 0: it is no step, and is made again whenever its text is another one.
	Version int
	Name    string
	// SQL is what the step runs.
	SQL string
	// WorksFrom is the step that a program must know to work on a database which has had this one;
	// it lets old and new programs run side by side during an upgrade.
	WorksFrom int
	// Checksum tells whether the step was changed since it was applied.
	Checksum string
}
