package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/sluice-queue/sluice/worker"
)

// answer is a line that a program prints about a job. It says one thing: that the job is done, that
// the attempt failed, that it is handed back, how far it has come, or that the program is alive.
type answer struct {
	ID         string          `json:"id"`
	Result     json.RawMessage `json:"result"` // null counts: done without a result
	Error      string          `json:"error"`
	Permanent  bool            `json:"permanent"`
	RetryAfter string          `json:"retry_after"`
	Release    string          `json:"release"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	Heartbeat  bool            `json:"heartbeat"`

	wait time.Duration // what RetryAfter or Release says
}

var (
	errSaysNothing = errors.New(`it says none of "result", "error", "release", "checkpoint" and "heartbeat"`)
	errSaysTwo     = errors.New(`it says more than one of "result", "error", "release", "checkpoint" and "heartbeat"`)
	errTwoWays     = errors.New(`"permanent" and "retry_after" belong to an "error", and exclude each other`)
)

// readAnswer reads a line. A field that is not known may be one that is misspelt, and makes it no answer.
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
	for _, says := range []bool{len(a.Result) > 0, a.Error != "", a.Release != "", len(a.Checkpoint) > 0, a.Heartbeat} {
		if says {
			said++
		}
	}
	switch {
	case said == 0:
		return errSaysNothing
	case said > 1:
		return errSaysTwo
	case a.Permanent && a.RetryAfter != "", (a.Permanent || a.RetryAfter != "") && a.Error == "":
		return errTwoWays
	}
	if wait := a.RetryAfter + a.Release; wait != "" { // one of them is empty
		a.wait, err = parseDuration(wait)
	}
	return err
}

// outcome is what a handler returns that says the same. It is nil for a result.
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

// readFailure reads what a program for one job printed before it failed. It reports false if that says
// neither how it failed nor that the job is handed back.
func readFailure(out []byte) (a answer, ok bool) {
	a, err := readAnswer(bytes.TrimSpace(out))
	return a, err == nil && (a.Error != "" || a.Release != "")
}
