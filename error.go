package sluice

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// The errors that a caller may act on. They arrive wrapped with what was being done; ask with
// errors.Is, and with errors.As for the types below.
var (
	// ErrInvalid: the input breaks a rule. The error is an *InvalidError, which names the field.
	ErrInvalid = errors.New("invalid input")
	// ErrNotFound: no job, queue, tenant or tier has that name.
	ErrNotFound = errors.New("not found")
	// ErrLost: the caller no longer holds the job; nothing was changed. The lease ran out and
	// somebody else has it, or a person cancelled it. Touch nothing that the job's next holder may use.
	ErrLost = errors.New("the claim is lost")
	// ErrCancelled: somebody cancelled the job while the caller held it, and nobody else has it: clean up. Stores answer
	// with ErrLost; a worker asks the store which of the two it was, for the cause of a handler's context and for
	// SaveCheckpoint. It is no ErrLost.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrNotAllowed: the state machine has no such move from the job's state.
	ErrNotAllowed = errors.New("not allowed in this state")
	// ErrDuplicate: another unfinished job holds the key.
	ErrDuplicate = errors.New("duplicate key")
	// ErrConflict: somebody else changed the settings in between. Read them again.
	ErrConflict = errors.New("changed by somebody else")
	// ErrUnavailable: the store could not be reached, or did not answer within the deadline.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNotMigrated: the database lacks Sluice's tables, or some of them.
	ErrNotMigrated = errors.New("database not migrated")
	// ErrMoved: the store was moved to another one, which the error names, or is being moved. Use that one.
	ErrMoved = errors.New("store was moved")
	// ErrReader: the store's role only reads, and may neither write, nor see payloads, results, checkpoints and tokens. Nothing
	// was changed. Connect as a role that may.
	ErrReader = errors.New("this role only reads")
	// ErrForeignTx: what was given as a transaction is not one of the store's own driver and database. Nothing was written.
	ErrForeignTx = errors.New("not a transaction of this store")
	// ErrNewerSchema: the database was migrated by a newer Sluice that this one cannot work with. A store that is open
	// looks for it once a second, and refuses every verb then. Deploy the program that the error names.
	ErrNewerSchema = errors.New("database is newer than this program")
	// ErrFollower: the statement of a Follower failed, and the move with it. Nothing was changed. The error is a
	// *FollowerError, which names the follower.
	ErrFollower = errors.New("the statement of a follower failed")
)

// InvalidError says which field of the input breaks which rule.
type InvalidError struct {
	Field string
	Rule  string
}

// Error names the field and the rule.
func (e *InvalidError) Error() string { return "invalid " + e.Field + ": " + e.Rule }

// Is makes an InvalidError an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// FollowerError says whose statement failed, and why.
type FollowerError struct {
	// Followers has the name of the follower. SQLite does not tell which it was: where a file has several, all are named.
	Followers []string
	// Err is what the database said.
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

// Is makes a FollowerError an ErrFollower.
func (e *FollowerError) Is(target error) bool { return target == ErrFollower }

// Unwrap gives what the database said.
func (e *FollowerError) Unwrap() error { return e.Err }

func invalid(field, rule string) error { return &InvalidError{Field: field, Rule: rule} }

// EnqueueError says that jobs may not have been stored, and under which ids they may be sent again: a job that was stored
// is then its own duplicate, and none is stored twice.
type EnqueueError struct {
	// IDs are those of the jobs, in their order: the caller's, or those that the client chose.
	IDs []ID
	// Err is why.
	Err error
}

// Error tells why, and under which id a single job may be sent again.
func (e *EnqueueError) Error() string {
	if len(e.IDs) == 1 {
		return fmt.Sprintf("enqueue job %s: %v", e.IDs[0], e.Err)
	}
	return fmt.Sprintf("enqueue %d jobs: %v", len(e.IDs), e.Err)
}

// Unwrap gives why.
func (e *EnqueueError) Unwrap() error { return e.Err }

// BatchError says which items of a batch failed; the others succeeded.
type BatchError struct {
	// Failed maps the index of an item to its error.
	Failed map[int]error
	// Total is how many items the batch had.
	Total int
}

// Error tells how many failed, and the first few.
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

// Unwrap lets errors.Is and errors.As look at each item's error.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, at := range e.indexes() {
		errs = append(errs, e.Failed[at])
	}
	return errs
}

func (e *BatchError) indexes() []int {
	at := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		at = append(at, i)
	}
	sort.Ints(at)
	return at
}

// OutageReporter is a Store that knows the faults of its own connections, also where a caller met them: in a transaction
// of its own on the store's database, for instance.
type OutageReporter interface {
	// Outage reports whether an error says that the store's database, or a connection to it, was out of reach.
	Outage(err error) bool
}

// Outage reports whether an error says that a store was out of reach: an ErrUnavailable, or what an OutageReporter knows
// as a fault of its connections. A worker releases the job of a handler that returns such an error, and counts no attempt.
func Outage(store Store, err error) bool {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err != nil
	}
	reporter, found := StoreAs[OutageReporter](store)
	return found && reporter.Outage(err)
}
