package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/internal/demo"
)

// crew are the workers of the demo.
type crew interface {
	start(ctx context.Context) error
	// progress is told how far the wave has come, and may say something.
	progress(ctx context.Context, done, total int, say func(format string, args ...any)) error
	// stop ends the workers and waits for them. It may be called more than once.
	stop() error
}

// crewInside is a worker of this process.
type crewInside struct {
	run    *demoRun
	logger *slog.Logger
	ended  chan error
	end    context.CancelFunc
}

func (c *crewInside) start(ctx context.Context) error {
	ctx, c.end = context.WithCancel(ctx)
	c.ended = make(chan error, 1)
	w := demo.NewWorker(c.run.store, c.run.ledger, c.run.summary.Queue, c.run.flags.slots, c.logger)
	go func() { c.ended <- w.Run(ctx) }()
	return nil
}

func (c *crewInside) progress(ctx context.Context, _, _ int, _ func(string, ...any)) error {
	select {
	case err := <-c.ended:
		c.ended <- err // stop looks as well
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the worker ended: %w", err)
	default:
		return nil
	}
}

func (c *crewInside) stop() error {
	c.end()
	err := <-c.ended
	c.ended <- err
	return err
}

// crewOutside is two worker processes, one of which is killed in the middle and replaced.
type crewOutside struct {
	run       *demoRun
	processes []workerProcess
}

// workerProcess ends when its standard input does: it does not outlive this process, however that
// ends.
type workerProcess struct {
	*exec.Cmd
	life io.Closer
}

func (c *crewOutside) start(ctx context.Context) error {
	for range 2 {
		if err := c.spawn(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *crewOutside) spawn(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "demo-worker", "--queue", c.run.summary.Queue, "--slots", fmt.Sprint(c.run.flags.slots))
	inGroup(cmd) // an interrupt at the terminal is ours to pass on
	cmd.Env = append(os.Environ(), "SLUICE_DB="+c.run.db)
	cmd.Stderr = c.run.stderr
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a worker process: %w", err)
	}
	c.processes = append(c.processes, workerProcess{cmd, life})
	return nil
}

// progress kills a worker when two fifths are done.
func (c *crewOutside) progress(ctx context.Context, done, total int, say func(string, ...any)) error {
	if c.run.summary.Killed > 0 || done < total*2/5 {
		return nil
	}
	victim := c.processes[0]
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	_ = victim.Wait() // it was killed
	c.run.summary.Killed++
	say("killed worker process %d (SIGKILL) at %s of %s; another takes its place", victim.Process.Pid, count(done), count(total))
	c.processes = c.processes[1:]
	return c.spawn(ctx)
}

func (c *crewOutside) stop() error {
	var errs []error
	for _, process := range c.processes {
		errs = append(errs, process.life.Close())
	}
	for _, process := range c.processes {
		errs = append(errs, process.Wait())
	}
	c.processes = nil
	return errors.Join(errs...)
}

// demoWorkerCommand is what a worker process of «demo --kill» runs.
func (a *app) demoWorkerCommand() *cobra.Command {
	var queue string
	var slots int
	command := &cobra.Command{
		Use:    "demo-worker",
		Short:  "Be a worker process of the demo, until standard input ends",
		Hidden: true,
		Args:   arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := context.WithCancel(command.Context())
			defer stop()
			go func() {
				_, _ = io.Copy(io.Discard, a.stdin) // it ends, one way or the other
				stop()
			}()
			store, err := a.open(ctx)
			if err != nil {
				return err
			}
			defer a.close(store)
			ledger, err := demo.NewLedger(store)
			if err != nil {
				return err
			}
			err = demo.NewWorker(store, ledger, queue, slots, slog.New(slog.DiscardHandler)).Run(ctx)
			if errors.Is(err, context.Canceled) {
				return nil // told to end before it had begun
			}
			return err
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "the queue of the payments")
	command.Flags().IntVar(&slots, "slots", 64, "how many handlers run at once")
	return command
}
