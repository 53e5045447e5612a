package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// Deed is the behaviour of a run.
type Deed string

// The deeds.
const (
	// Complete ends the run well, with Script.Result.
	Complete Deed = "complete"
	// Fail fails the run with Script.Error, without a retry.
	Fail Deed = "fail"
	// Wait waits until the run is cancelled, and ends as cancelled.
	Wait Deed = "wait"
	// Panic panics with Script.Error.
	Panic Deed = "panic"
)

// Script is the payload of every run of the rules. The workflow or function of the test first records in the
// diary that it has begun, and then obeys the script.
type Script struct {
	Do     Deed            `json:"do"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Data has no effect; it only makes payloads differ.
	Data json.RawMessage `json:"data,omitempty"`
}

func (s Script) payload(t *testing.T) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Begun is an execution recorded in the diary.
type Begun struct {
	Ref string
	// Execution tells executions of a ref apart, in the engine's own terms.
	Execution string
	// Payload is the payload of the execution.
	Payload json.RawMessage
	// At is by the clock of this process.
	At time.Time
}

// Diary records which refs were executed, and how often. The zero value works; many rules and workers may share
// one.
type Diary struct {
	mu    sync.Mutex
	begun map[string][]Begun
}

// Begin records that a run has begun. A repeated call with the same ref and execution, such as in a replayed
// workflow, has no effect.
func (d *Diary) Begin(ref, execution string, payload json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == nil {
		d.begun = make(map[string][]Begun)
	}
	for _, b := range d.begun[ref] {
		if b.Execution == execution {
			return
		}
	}
	d.begun[ref] = append(d.begun[ref], Begun{Ref: ref, Execution: execution, Payload: slices.Clone(payload), At: time.Now()})
}

// Of lists the executions of a ref, in the order in which they began.
func (d *Diary) Of(ref string) []Begun {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.begun[ref])
}

// Obey begins a run and does as its payload says, for engines that run Go functions.
func (d *Diary) Obey(ctx context.Context, ref, execution string, payload json.RawMessage) (json.RawMessage, error) {
	d.Begin(ref, execution, payload)
	var script Script
	if err := json.Unmarshal(payload, &script); err != nil {
		return nil, err
	}
	switch script.Do {
	case Complete:
		return script.Result, nil
	case Fail:
		return nil, errors.New(script.Error)
	case Panic:
		panic(script.Error)
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
