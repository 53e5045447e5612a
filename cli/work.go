package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// workFlags are the options of «work».
type workFlags struct {
	slots    int
	poll     time.Duration
	grace    time.Duration
	noUpkeep bool
	drain    bool
}

func (a *app) workCommand() *cobra.Command {
	var f workFlags
	command := &cobra.Command{
		Use:   "work QUEUE[,QUEUE…] -- COMMAND [ARG…]",
		Short: "Run a program for each job of a queue",
		Long: `Claims jobs and runs the program once for each: the payload on its standard input, and the job in its
environment (SLUICE_JOB_ID, SLUICE_QUEUE, SLUICE_TENANT, SLUICE_KEY, SLUICE_ATTEMPT). What it prints is
the job's result. Its exit code decides:

  0      done
  75     try again later: the job is handed back, and no attempt is counted
  other  the attempt failed; the job is retried after its backoff, or dead after its last attempt

The first interrupt drains: no new jobs, and the programs that run may end within --grace. The second
leaves at once. Upkeep runs along, so that one such process is all a small system needs.`,
		Example: "  sluice work mail --slots 4 -- ./send-mail\n  sluice work resize -- sh -c 'convert - -resize 200x200 out/$SLUICE_JOB_ID.png'",
		Args:    arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() != 1 {
				return usagef("the program comes after «--»; write: sluice work QUEUE -- COMMAND")
			}
			if f.slots < 1 {
				return usagef("--slots %d is not at least 1", f.slots)
			}
			queues := strings.Split(args[0], ",")
			for i, queue := range queues {
				if err := sluice.CheckQueueName(queue); err != nil {
					return err
				}
				if slices.Contains(queues[:i], queue) {
					return usagef("queue %s is named twice", queue)
				}
			}
			return a.work(command.Context(), queues, args[1:], f)
		},
	}
	flags := command.Flags()
	flags.IntVar(&f.slots, "slots", 4, "how many programs run at once")
	flags.Var(newDuration(&f.poll, time.Second), "poll", "how often to look when nobody says that there are jobs")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "how long programs may go on after the first interrupt")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave recovering, expiring and pruning to others")
	flags.BoolVar(&f.drain, "until-empty", false, "end when no job of the queues is unfinished")
	return command
}

func (a *app) work(ctx context.Context, queues, program []string, f workFlags) error {
	if _, err := exec.LookPath(program[0]); err != nil {
		return usagef("%w", err)
	}
	logger, err := a.logger()
	if err != nil {
		return err
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	w := worker.New(store, worker.Options{Slots: f.slots, Poll: f.poll, Drain: f.grace, PayloadChecker: schema.New(), Logger: logger})
	for _, queue := range queues {
		worker.Handle(w, sluice.QueueOf[json.RawMessage](queue), (&runner{program: program, running: &a.programs, stderr: a.stderr, store: store}).run, worker.QueueOptions{})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	if !f.noUpkeep {
		helpers.Go(func() { _ = upkeep.New(store, upkeep.Options{PayloadChecker: schema.New(), Logger: logger}).Run(ctx) }) // it returns nil
	}
	var emptied atomic.Bool
	if f.drain {
		helpers.Go(func() {
			stopWhenEmpty(ctx, store, queues, func() {
				emptied.Store(true)
				stop()
			})
		})
	}
	err = w.Run(ctx)
	if emptied.Load() && errors.Is(err, context.Canceled) {
		return nil // there was nothing to do, and it was seen before the worker had begun
	}
	return err
}

// stopWhenEmpty ends the work when every job of the queues is finished.
func stopWhenEmpty(ctx context.Context, store sluice.Store, queues []string, stop func()) {
	for {
		left := 0
		for _, queue := range queues {
			depth, err := store.Depth(ctx, queue)
			if err != nil {
				left++ // not known: look again
				continue
			}
			left += depth.Ready + depth.Scheduled + depth.Blocked + depth.Claimed
		}
		if left == 0 {
			stop()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// exitTryAgain is EX_TEMPFAIL of sysexits: the program says that it is not the job's fault.
const exitTryAgain = 75

const (
	maxResult = 1 << 20 // of what a program prints
	maxTail   = 2 << 10 // of what it says on standard error, for the job's error
	killAfter = 5 * time.Second
)

// runner runs a program for jobs.
type runner struct {
	program []string
	running *programs
	stderr  io.Writer
	store   sluice.Store
}

func (r *runner) run(ctx context.Context, job *worker.Job[json.RawMessage]) error {
	cmd := exec.CommandContext(ctx, r.program[0], r.program[1:]...)
	cmd.Env = append(os.Environ(), "SLUICE_JOB_ID="+job.ID.String(), "SLUICE_QUEUE="+job.Queue, "SLUICE_TENANT="+job.Tenant,
		"SLUICE_KEY="+job.Key, fmt.Sprintf("SLUICE_ATTEMPT=%d", job.Attempt()))
	cmd.Stdin = bytes.NewReader(job.Payload)
	out, tail := &boundedBuffer{limit: maxResult}, &tailBuffer{limit: maxTail}
	cmd.Stdout, cmd.Stderr = out, io.MultiWriter(r.stderr, tail)
	inGroup(cmd)
	cmd.WaitDelay = killAfter
	err := r.running.run(cmd)
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it left a child behind that kept its output open
		return r.keep(job, out)
	case errors.As(err, &exit) && exit.ExitCode() == exitTryAgain:
		return worker.Snooze(r.wait(ctx, job))
	}
	if said := strings.TrimSpace(tail.String()); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// programs are those that run. Each is in a process group of its own, which an interrupt at the
// terminal does not reach.
type programs struct {
	mu      sync.Mutex
	running map[*exec.Cmd]struct{}
	killed  bool
}

// run runs a program to its end, and ends what it leaves behind.
func (p *programs) run(cmd *exec.Cmd) error {
	p.mu.Lock()
	if p.killed {
		p.mu.Unlock()
		return context.Canceled
	}
	if err := cmd.Start(); err != nil {
		p.mu.Unlock()
		return err
	}
	if p.running == nil {
		p.running = make(map[*exec.Cmd]struct{})
	}
	p.running[cmd] = struct{}{}
	p.mu.Unlock()
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, cmd)
	killGroup(cmd)
	return err
}

// kill ends all of them at once, and keeps new ones from starting: the process is about to leave,
// and its jobs will be handed to others.
func (p *programs) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	for cmd := range p.running {
		killGroup(cmd)
	}
}

// keep stores what the program printed: JSON as it is, other text as a string.
func (r *runner) keep(job *worker.Job[json.RawMessage], out *boundedBuffer) error {
	if out.over {
		return worker.Permanent(fmt.Errorf("it printed more than the %d bytes that a result may have", maxResult))
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
	queue, err := sluice.NewLiveSettings(r.store, sluice.LiveOptions{}).Queue(ctx, job.Queue)
	if err != nil {
		queue.Settings = sluice.DefaultSettings()
	}
	return queue.Settings.Backoff.Delay(job.Releases + 1)
}

// boundedBuffer keeps what is written up to a limit, and notes that there was more.
type boundedBuffer struct {
	bytes.Buffer
	limit int
	over  bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// tailBuffer keeps the end of what is written.
type tailBuffer struct {
	mu    sync.Mutex
	text  []byte
	limit int
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - b.limit; over > 0 {
		b.text = append(b.text[:0], b.text[over:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
