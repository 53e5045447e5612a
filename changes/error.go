package changes

import "fmt"

// Error says that upkeep cannot apply a scheduled change: this machine lacks the window's time zone, or plain SQL
// stored nonsense. Upkeep applies the other changes.
type Error struct {
	// Queue and Plan name the change. Plan 0: no plan of the queue is readable.
	Queue string
	Plan  int64
	// Err is the broken rule.
	Err error
}

// Error names the change and the rule, and says what to do.
func (e *Error) Error() string {
	if e.Plan == 0 {
		return fmt.Sprintf("the plans of queue %q are not carried out: %v; `sluice settings undo %s` removes them", e.Queue, e.Err, e.Queue)
	}
	return fmt.Sprintf("plan %d of queue %q is not carried out: %v; mend that where upkeep runs, or remove the plan with `sluice settings unplan %s %d`",
		e.Plan, e.Queue, e.Err, e.Queue, e.Plan)
}

// Unwrap returns the broken rule.
func (e *Error) Unwrap() error { return e.Err }
