package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/worker"
)

// answer is a line that a program prints about a job. Each line says one thing: done, failed, handed back, progress, or
// a sign of life.
type answer struct {
	ID         string          `json:"id"`
	Result     json.RawMessage `json:"result"` // null: done without a result
	Error      string          `json:"error"`
	Permanent  bool            `json:"permanent"`
	RetryAfter string          `json:"retry_after"`
	Release    string          `json:"release"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	Progress   *float64        `json:"progress"`
	Message    string          `json:"message"`
	Heartbeat  bool            `json:"heartbeat"`

	wait time.Duration // of RetryAfter or Release
}

var (
	errSaysNothing = errors.New(`it says none of "result", "error", "release", "checkpoint", "progress" and "heartbeat"`)
	errSaysTwo     = errors.New(`it says more than one of "result", "error", "release", "checkpoint", "progress" and "heartbeat"`)
	errNoMessage   = errors.New(`"message" belongs to "progress", which must be from 0 to 1`)
	errTwoWays     = errors.New(`"permanent" and "retry_after" belong to an "error", and exclude each other`)
)

// readAnswer reads a line. An unknown field, perhaps misspelt, is an error.
func readAnswer(line []byte) (a answer, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return a, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("more follows its end")
	}
	return a, a.check()
}

func (a *answer) check() (err error) {
	said := 0
	for _, says := range []bool{len(a.Result) > 0, a.Error != "", a.Release != "", len(a.Checkpoint) > 0, a.Progress != nil, a.Heartbeat} {
		if says {
			said++
		}
	}
	switch {
	case said == 0:
		return errSaysNothing
	case said > 1:
		return errSaysTwo
	case a.Progress == nil && a.Message != "", a.Progress != nil && (*a.Progress < 0 || *a.Progress > 1):
		return errNoMessage
	case a.Permanent && a.RetryAfter != "", (a.Permanent || a.RetryAfter != "") && a.Error == "":
		return errTwoWays
	}
	if wait := a.RetryAfter + a.Release; wait != "" { // one of them is empty
		a.wait, err = jobline.ParseDuration(wait)
	}
	return err
}

// outcome is the equivalent error of a handler; nil for a result.
func (a *answer) outcome() error {
	switch {
	case a.Release != "":
		return worker.Snooze(a.wait)
	case a.Permanent:
		return worker.Permanent(errors.New(a.Error))
	case a.RetryAfter != "":
		return worker.RetryAfter(a.wait, errors.New(a.Error))
	case a.Error != "":
		return errors.New(a.Error)
	}
	return nil
}

// readFailure reads the output of a failed program for one job. ok: it says how the program failed, or hands the job
// back.
func readFailure(out []byte) (a answer, ok bool) {
	a, err := readAnswer(bytes.TrimSpace(out))
	return a, err == nil && (a.Error != "" || a.Release != "")
}
