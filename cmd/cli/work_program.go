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

// From sysexits: EX_TEMPFAIL means that the job is not at fault, EX_DATAERR that it will never succeed.
const (
	exitTryAgain  = 75
	exitPermanent = 65
)

const (
	maxResult = sluice.MaxResultBytes // of a program's output
	maxTail   = 2 << 10               // of its standard error, for the job's error
	// tailBorder is scrubbed before the tail, so that the tail never begins with half a secret, which no rule knows.
	tailBorder = 4 << 10
	killAfter  = 5 * time.Second
)

// runner runs a program for jobs.
type runner struct {
	program []string
	running *programs
	// settings returns a queue's settings, as old as [sluice.LiveSettings] allows.
	settings func(ctx context.Context, queue string) sluice.Settings
	log      *event.Log
	said     *event.Log          // gets every line that a program says
	pass     []string            // of Sluice's variables, passed to programs
	clean    func(string) string // removes secrets from what a program says
	silence  time.Duration       // longest silence of a program; 0: no limit
}

// settingsOf makes runner.settings. If the store does not answer, a queue has default settings. The worker reports
// wrong settings.
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
		r.said.Emit(event.ProgramSaid, job.Queue, "job", job.ID, "line", line, "cut", event.Count(cut))
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

// failed turns a program's end into an error, for a job without another answer.
func (r *runner) failed(ctx context.Context, job *worker.Job[json.RawMessage], err error) error {
	switch {
	case isNoAttempt(err):
		return worker.Snooze(r.wait(ctx, job))
	case codeOf(err) == exitPermanent:
		return worker.Permanent(err)
	}
	return err
}

// isNoAttempt reports whether the jobs are not at fault for a program's end. They are retried later, and no attempt
// counts.
func isNoAttempt(err error) bool { return codeOf(err) == exitTryAgain || errors.Is(err, errFrozen) }

// codeOf is the exit code of a program that ended by itself, else 0 or less.
func codeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// execute runs the program to its end. Errors include the end of its standard error.
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
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // a child that it left behind kept its output open
		return nil
	}
	if why := context.Cause(ctx); errors.Is(why, errTooSilent) || errors.Is(why, errTooMuch) {
		err = why // instead of `killed`
	}
	if last := r.endOf(tail); last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// ours is the prefix of Sluice's variables.
const ours = "SLUICE_"

// environment returns the variables of this process that a program gets. Sluice's own are left out: the store's address
// has a password, and programs must not sign alerts.
func (r *runner) environment(all []string) []string {
	return slices.DeleteFunc(all, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return len(name) >= len(ours) && strings.EqualFold(name[:len(ours)], ours) && !slices.Contains(r.pass, name)
	})
}

// endOf returns the end of what a program said.
func (r *runner) endOf(tail *tailBuffer) string {
	text := tail.String()
	whole := len(text) < tail.limit
	text = r.clean(text)
	if !whole {
		text = text[min(tailBorder, len(text)):]
	}
	return strings.TrimSpace(text[max(0, len(text)-maxTail):])
}

// errTooMuch means that a program printed more than can be stored.
var errTooMuch = fmt.Errorf("it printed more than the %d bytes that a result may have", maxResult)

// keep stores a program's output: JSON as it is, other text as a string.
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

// wait is the delay before a job is tried again, as if its releases were attempts.
func (r *runner) wait(ctx context.Context, job *worker.Job[json.RawMessage]) time.Duration {
	return r.settings(ctx, job.Queue).Backoff.Delay(job.Releases + 1)
}
