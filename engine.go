package sluice

import (
	"fmt"
)

// OtherRunnerError says that a queue refused a claim: its jobs are not for this kind of holder.
type OtherRunnerError struct {
	Queue string
	// Engine runs the queue's jobs; empty: workers do.
	Engine string
	// Claimed is the engine that the holder claimed for; empty: it is a worker.
	Claimed string
}

// Error says who runs the jobs, and what to do.
func (e *OtherRunnerError) Error() string {
	switch {
	case e.Engine == "":
		return fmt.Sprintf("claim from queue %s for engine %s: workers run its jobs; run `sluice work %s`, or set its `engine`", e.Queue, e.Claimed, e.Queue)
	case e.Claimed == "":
		return fmt.Sprintf("claim from queue %s for a worker: engine %s runs its jobs; run `sluice dispatch %s`, or clear its `engine`", e.Queue, e.Engine, e.Queue)
	}
	return fmt.Sprintf("claim from queue %s for engine %s: engine %s runs its jobs; read its settings again", e.Queue, e.Claimed, e.Engine)
}

// Is makes it an ErrNotAllowed.
func (e *OtherRunnerError) Is(target error) bool { return target == ErrNotAllowed }

// CheckRunner refuses a claim from a queue whose engine is another one than the request's.
func (r ClaimRequest) CheckRunner(engine string) error {
	if r.Engine == engine {
		return nil
	}
	return &OtherRunnerError{Queue: r.Queue, Engine: engine, Claimed: r.Engine}
}
