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

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/demo"
)

// crew runs the workers of the demo.
type crew interface {
	start(ctx context.Context) error
	// progress gets the progress of the wave, and may print something.
	progress(ctx context.Context, done, total int, say func(format string, args ...any)) error
	// stop ends the workers and waits for them. Calling stop again is safe.
	stop() error
}

// crewInside is a worker in this process.
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
		c.ended <- err // for stop
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

// crewOutside is 2 worker processes; one is killed midway and replaced.
type crewOutside struct {
	run       *demoRun
	processes []workerProcess
}

// workerProcess ends with its standard input, so it never outlives this process.
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
	inGroup(cmd) // this process handles terminal interrupts
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

// progress kills a worker when 2/5 are done.
func (c *crewOutside) progress(ctx context.Context, done, total int, say func(string, ...any)) error {
	if c.run.summary.Killed > 0 || done < total*2/5 {
		return nil
	}
	victim := c.processes[0]
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	_ = victim.Wait() // fails: killed
	c.run.summary.Killed++
	say("killed worker process %d (SIGKILL) at %s of %s; another takes its place", victim.Process.Pid, draw.Count(done), draw.Count(total))
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

// demoWorkerCommand runs in the worker processes of `demo --kill`.
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
				_, _ = io.Copy(io.Discard, a.stdin) // any end counts
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
				return nil // ended before it began
			}
			return err
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "the queue of the payments")
	command.Flags().IntVar(&slots, "slots", 64, "handlers at once")
	return command
}
