package sluice

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// The errors that a caller can act on. They arrive wrapped in an error that says which call failed. Test for them
// with errors.Is, and for the error types of this package with errors.As.
var (
	// ErrInvalid: the input breaks a rule. The error is an [*InvalidError], which names the field.
	ErrInvalid = errors.New("invalid input")
	// ErrNotFound: no job, queue, tenant, tier or setting has that name.
	ErrNotFound = errors.New("not found")
	// ErrLost: the caller does not hold the job any more, and nothing was changed. The lease ran out and another
	// holder has the job, or a person cancelled it. Do not touch anything that the next holder may use.
	ErrLost = errors.New("the claim is lost")
	// ErrCancelled: somebody cancelled the job while the caller held it, and nobody else holds it. Clean up.
	//
	// Only package worker returns it, as the cause of a handler's context and from SaveCheckpoint. Stores return
	// [ErrLost] in this case. ErrCancelled is not an ErrLost.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrNotAllowed: the state machine has no such move from the job's state.
	ErrNotAllowed = errors.New("not allowed in this state")
	// ErrDuplicate: another unfinished job has the key.
	ErrDuplicate = errors.New("duplicate key")
	// ErrConflict: somebody else changed the settings after you read them. Read them again.
	ErrConflict = errors.New("changed by somebody else")
	// ErrUnavailable: the caller could not reach the store, or the store did not answer within the deadline.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDiskFull: the disk of the database is full. Nothing acknowledged is lost; make room. It is an [ErrUnavailable].
	ErrDiskFull = fmt.Errorf("the disk is full: %w", ErrUnavailable)
	// ErrNotMigrated: the database lacks some of Sluice's tables.
	ErrNotMigrated = errors.New("database not migrated")
	// ErrMoved: somebody moved the store to another store, or is moving it. Use the store that the error names.
	ErrMoved = errors.New("store was moved")
	// ErrReader: the store's database role is read-only. It cannot write, or see payloads, results, checkpoints and
	// tokens. Nothing was changed. Connect with another role.
	ErrReader = errors.New("this role only reads")
	// ErrForeignTx: the value given as a transaction is no transaction of the store's driver and database. Nothing was written.
	ErrForeignTx = errors.New("not a transaction of this store")
	// ErrNewerSchema: a newer Sluice has migrated the database, and this program cannot work with it. Deploy the program
	// that the error names. An open store checks for this once a second, and then refuses every verb.
	ErrNewerSchema = errors.New("database is newer than this program")
	// ErrFollower: the statement of a [Follower] failed, and so did the move. Nothing was changed. The error is a
	// [*FollowerError], which names the follower.
	ErrFollower = errors.New("the statement of a follower failed")
)

// InvalidError says which field of the input breaks which rule. It is an [ErrInvalid].
type InvalidError struct {
	Field string
	Rule  string
}

// Error returns the field and the rule.
func (e *InvalidError) Error() string { return "invalid " + e.Field + ": " + e.Rule }

// Is makes an InvalidError an [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// FollowerError says which follower's statement failed, and why. It is an [ErrFollower].
type FollowerError struct {
	// Followers names the follower. SQLite does not report which of several statements failed, so there Followers
	// names all followers of the file.
	Followers []string
	// Err is the database's error.
	Err error
}

// Error names the follower, and says what to do.
func (e *FollowerError) Error() string {
	whose := fmt.Sprintf("the statement of the follower %q", e.Followers[0])
	if len(e.Followers) > 1 {
		whose = fmt.Sprintf("a statement of the followers %q", e.Followers)
	}
	return fmt.Sprintf("%s failed, and the job stays as it was; mend the statement, or end it by Unfollow: %v", whose, e.Err)
}

// Is makes a FollowerError an [ErrFollower].
func (e *FollowerError) Is(target error) bool { return target == ErrFollower }

// Unwrap returns the database's error.
func (e *FollowerError) Unwrap() error { return e.Err }

// invalid returns an [InvalidError].
func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }

// EnqueueError says that an enqueue failed and that the jobs may be stored or not. Send them again with the same
// IDs: a job that is stored becomes a duplicate of itself.
type EnqueueError struct {
	// IDs are the IDs of the jobs, in the order of the call. The client chose the IDs of jobs that had none.
	IDs []ID
	// Err is the cause.
	Err error
}

// Error returns the cause, and the ID if there is one job.
func (e *EnqueueError) Error() string {
	if len(e.IDs) == 1 {
		return fmt.Sprintf("enqueue job %s: %v", e.IDs[0], e.Err)
	}
	return fmt.Sprintf("enqueue %d jobs: %v", len(e.IDs), e.Err)
}

// Unwrap returns the cause.
func (e *EnqueueError) Unwrap() error { return e.Err }

// BatchError says which items of a batch failed. The other items succeeded.
type BatchError struct {
	// Failed has the error of each failed item, by the index of the item.
	Failed map[int]error
	// Total is the number of items in the batch.
	Total int
}

// Error returns how many items failed, and the first 3 errors.
func (e *BatchError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d failed", len(e.Failed), e.Total)
	for i, at := range e.indexes() {
		if i == 3 {
			text.WriteString("; …")
			break
		}
		fmt.Fprintf(&text, "; item %d: %v", at, e.Failed[at])
	}
	return text.String()
}

// Unwrap returns the items' errors, so that errors.Is and errors.As look at each of them.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, at := range e.indexes() {
		errs = append(errs, e.Failed[at])
	}
	return errs
}

// indexes returns the indexes of the failed items, sorted.
func (e *BatchError) indexes() []int {
	at := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		at = append(at, i)
	}
	sort.Ints(at)
	return at
}

// OutageReporter is a [Store] that recognises faults of its own connections. A caller may meet such a fault in a
// transaction of its own on the store's database.
type OutageReporter interface {
	// Outage reports whether an error says that the store's database, or a connection to it, was out of reach.
	Outage(err error) bool
}

// Outage reports whether an error says that a store was out of reach. The error is an [ErrUnavailable], or an
// [OutageReporter] recognises it.
//
// If a handler returns such an error, the worker releases the job and counts no attempt.
func Outage(store Store, err error) bool {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err != nil
	}
	reporter, found := StoreAs[OutageReporter](store)
	return found && reporter.Outage(err)
}
