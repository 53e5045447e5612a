package changes

import "fmt"

// Error says that upkeep cannot apply a scheduled change: this machine lacks the window's time zone, or plain SQL
// stored nonsense. Upkeep applies the other changes.
type Error struct {
	// Queue and Change name the change. Change 0: no change of the queue is readable.
	Queue  string
	Change int64
	// Err is the broken rule.
	Err error
}

// Error names the change and the rule, and says what to do.
func (e *Error) Error() string {
	if e.Change == 0 {
		return fmt.Sprintf("the scheduled changes of queue %q are not applied: %v; `sluice settings undo %s` removes them", e.Queue, e.Err, e.Queue)
	}
	return fmt.Sprintf("scheduled change %d of queue %q is not applied: %v; repair that where upkeep runs, or remove the change with `sluice settings unschedule %s %d`",
		e.Change, e.Queue, e.Err, e.Queue, e.Change)
}

// Unwrap returns the broken rule.
func (e *Error) Unwrap() error { return e.Err }
