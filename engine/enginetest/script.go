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

// Deed is what a run does.
type Deed string

// The deeds.
const (
	// Complete: it ends well, and returns Script.Result.
	Complete Deed = "complete"
	// Fail: it fails with Script.Error, and is not tried again.
	Fail Deed = "fail"
	// Wait: it waits until it is cancelled, and ends as cancelled.
	Wait Deed = "wait"
	// Panic: it panics with Script.Error.
	Panic Deed = "panic"
)

// Script is the payload of every run of the rules. The factory's workflow, or function, first writes into the diary that
// it has begun, and then does what the script says.
type Script struct {
	Do     Deed            `json:"do"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Data is only carried.
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

// Begun is an execution that the diary knows of.
type Begun struct {
	Ref string
	// Execution tells one execution of a ref from another, in the engine's words.
	Execution string
	// Payload is what it was given.
	Payload json.RawMessage
	// At is by the clock of this process.
	At time.Time
}

// Diary knows which refs were run, and how often. The zero value works; many rules and workers may share one.
type Diary struct {
	mu    sync.Mutex
	begun map[string][]Begun
}

// Begin notes that a run has begun. Said again with the same ref and execution, such as when a workflow is replayed, it
// changes nothing.
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

// Obey begins a run and does what its payload says, for engines that run Go functions.
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
