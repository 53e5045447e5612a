package wire

import (
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// EngineCheck is the result of checking a queue's engine.
type EngineCheck struct {
	// Queue is the queue, and Engine the name of its engine.
	Queue  string `json:"queue"`
	Engine string `json:"engine"`
	// Namespace, Type and TaskQueue say where the engine runs the jobs.
	Namespace string `json:"namespace"`
	Type      string `json:"type"`
	TaskQueue string `json:"task_queue"`
	// Report is the engine's answer.
	Report engine.Report `json:"report"`
	// Faults are sentences for people. Empty: the engine can run the jobs.
	Faults []string `json:"faults"`
}

// RunView is what an engine knows of a run.
type RunView struct {
	// Ref names the run, and Job its job.
	Ref string    `json:"ref"`
	Job sluice.ID `json:"job"`
	// State is the state of the run in the engine.
	State engine.State `json:"state"`
	// Result is the result of a run that succeeded, and Error why another failed.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// StartedAt and EndedAt are by the engine's clock. Missing: not yet, or not known.
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// Outcome returns the run as an engine answers.
func (r RunView) Outcome() engine.Outcome {
	return engine.Outcome{Ref: r.Ref, Job: r.Job, State: r.State, Result: r.Result, Error: r.Error, StartedAt: r.StartedAt, EndedAt: r.EndedAt}
}
