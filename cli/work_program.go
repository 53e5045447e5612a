package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/worker"
)

// Of sysexits: EX_TEMPFAIL says that it is not the job's fault, EX_DATAERR that the job will never succeed.
const (
	exitTryAgain  = 75
	exitPermanent = 65
)

const (
	maxResult = sluice.MaxResultBytes // of what a program prints
	maxTail   = 2 << 10               // of what it says on standard error, for the job's error
	// tailBorder is what is scrubbed before that, so that it does not begin with half of a secret, which no rule knows.
	tailBorder = 4 << 10
	killAfter  = 5 * time.Second
)

// runner runs a program for jobs.
type runner struct {
	program []string
	running *programs
	// settings gives those of a queue, which may be as old as LiveSettings allow.
	settings func(ctx context.Context, queue string) sluice.Settings
	log      *event.Log
	said     *event.Log          // gets every line that a program says
	pass     []string            // variables of Sluice's that a program gets all the same
	clean    func(string) string // removes secrets from what a program says
	silence  time.Duration       // for how long a program may say nothing; 0: for ever
}

// settingsOf gives what runner.settings asks for. Where the store does not answer, a queue's settings are those of a new one.
// The worker tells of what is wrong with them.
func settingsOf(store sluice.Store) func(ctx context.Context, queue string) sluice.Settings {
	live := sluice.NewLiveSettings(store, sluice.LiveOptions{Logger: slog.New(slog.DiscardHandler)})
	return func(ctx context.Context, name string) sluice.Settings {
		queue, err := live.Queue(ctx, name)
		if err != nil {
			return sluice.DefaultSettings()
		}
		return queue.Settings
	}
}

// run runs the program for one job.
func (r *runner) run(ctx context.Context, job *worker.Job[json.RawMessage]) error {
	out := &boundedBuffer{limit: maxResult}
	said := func(line string, cut int) {
		r.said.Tell(event.ProgramSaid, job.Queue, "job", job.ID, "line", line, "cut", event.Count(cut))
	}
	err := r.execute(ctx, r.settings(ctx, job.Queue).Lease, job.Payload, out, said, append(traceEnvironment(ctx), "SLUICE_JOB_ID="+job.ID.String(), "SLUICE_QUEUE="+job.Queue,
		"SLUICE_TENANT="+job.Tenant, "SLUICE_KEY="+job.Key, fmt.Sprintf("SLUICE_ATTEMPT=%d", job.Attempt()))...)
	if err == nil {
		return r.keep(job, out)
	}
	if said, ok := readFailure(out.Bytes()); ok {
		return said.outcome()
	}
	return r.failed(ctx, job, err)
}

// failed is what a program's end says of a job for which it said nothing else.
func (r *runner) failed(ctx context.Context, job *worker.Job[json.RawMessage], err error) error {
	switch {
	case isNoAttempt(err):
		return worker.Snooze(r.wait(ctx, job))
	case codeOf(err) == exitPermanent:
		return worker.Permanent(err)
	}
	return err
}

// isNoAttempt reports whether a program's end is nothing that its jobs can help: they are tried again later, and no attempt is
// counted.
func isNoAttempt(err error) bool { return codeOf(err) == exitTryAgain || errors.Is(err, errFrozen) }

// codeOf is the exit code of a program that ended by itself; else it is 0 or less.
func codeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// execute runs the program to its end. An error has the end of what it said on standard error.
func (r *runner) execute(ctx context.Context, lease time.Duration, stdin []byte, stdout io.Writer, said func(line string, cut int), environment ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ear := listen(r.silence, cancel)
	defer ear.stop()
	cmd := exec.CommandContext(ctx, r.program[0], r.program[1:]...)
	cmd.Env = append(r.environment(os.Environ()), environment...)
	cmd.Stdin = bytes.NewReader(stdin)
	tail := &tailBuffer{limit: tailBorder + maxTail}
	lines := &lineLog{each: said, clean: r.clean}
	defer lines.end()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(ear, stdout), io.MultiWriter(ear, lines, tail)
	inGroup(cmd)
	dieWithUs(cmd)
	cmd.WaitDelay = killAfter
	err := r.running.run(cmd, lease)
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it left a child behind that kept its output open
		return nil
	}
	if why := context.Cause(ctx); errors.Is(why, errTooSilent) || errors.Is(why, errTooMuch) {
		err = why // not that it was killed
	}
	if last := r.endOf(tail); last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// ours is how the names of Sluice's variables begin.
const ours = "SLUICE_"

// environment is what a program gets of this process's own. Sluice's settings are not for it: the address of the store has
// a password, and to sign alerts is not a program's business.
func (r *runner) environment(all []string) []string {
	return slices.DeleteFunc(all, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return len(name) >= len(ours) && strings.EqualFold(name[:len(ours)], ours) && !slices.Contains(r.pass, name)
	})
}

// endOf is the end of what a program said.
func (r *runner) endOf(tail *tailBuffer) string {
	text := tail.String()
	whole := len(text) < tail.limit
	text = r.clean(text)
	if !whole {
		text = text[min(tailBorder, len(text)):]
	}
	return strings.TrimSpace(text[max(0, len(text)-maxTail):])
}

// errTooMuch says that a program printed more than can be stored.
var errTooMuch = fmt.Errorf("it printed more than the %d bytes that a result may have", maxResult)

// keep stores what the program printed: JSON as it is, other text as a string.
func (r *runner) keep(job *worker.Job[json.RawMessage], out *boundedBuffer) error {
	if out.over {
		return worker.Permanent(errTooMuch)
	}
	text := bytes.TrimSpace(out.Bytes())
	switch {
	case len(text) == 0:
		return nil
	case json.Valid(text):
		return job.SetResult(json.RawMessage(text))
	}
	return job.SetResult(sluice.StoredText(string(text)))
}

// wait is how long a job waits that is to be tried again: as if its releases had been attempts.
func (r *runner) wait(ctx context.Context, job *worker.Job[json.RawMessage]) time.Duration {
	return r.settings(ctx, job.Queue).Backoff.Delay(job.Releases + 1)
}
