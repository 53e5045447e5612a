package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// maxBatch is how many jobs a program gets at the most; all of them are held while it runs.
const maxBatch = 1000

// workFlags are the options of «work».
type workFlags struct {
	slots    int
	poll     time.Duration
	grace    time.Duration
	noUpkeep bool
	drain    bool
	batch    int
	silence  time.Duration
	pass     []string
}

func (a *app) workCommand() *cobra.Command {
	var f workFlags
	command := &cobra.Command{
		Use:   "work QUEUE[,QUEUE…] -- COMMAND [ARG…]",
		Short: "Run a program for each job of a queue",
		Long: `Claims jobs and runs the program once for each: the payload on its standard input, and the job in its
environment (SLUICE_JOB_ID, SLUICE_QUEUE, SLUICE_TENANT, SLUICE_KEY, SLUICE_ATTEMPT). It gets no other variable
that begins with SLUICE_, unless --pass names it. What it prints is the job's result; what it says on standard
error comes to the log, line by line. Its exit code decides:

  0      done
  65     the job will never succeed: it is dead at once
  75     try again later: the job is handed back, and no attempt is counted
  other  the attempt failed; the job is retried after its backoff, or dead after its last attempt

A program that fails may print how, as {"error": "…"} with "permanent": true or "retry_after": "10m",
or {"release": "30s"}; that goes before the exit code.

With --batch it is run for many jobs at a time: one JSON object per line on its standard input (id, queue,
tenant, key, attempt, labels, checkpoint, payload), and one line printed for each job, in any order:

  {"id": "…", "result": …}                              done; null is no result
  {"id": "…", "error": "…"}                             the attempt failed
  {"id": "…", "error": "…", "retry_after": "10m"}       and the next makes sense then
  {"id": "…", "error": "…", "permanent": true}          the job is dead at once
  {"id": "…", "release": "30s"}                         handed back; no attempt is counted
  {"id": "…", "checkpoint": …}                          how far it has come, for its next attempt
  {"heartbeat": true}                                   a sign of life, for --silence

Each job is settled when its line comes. If the program ends without an answer for some, each of them is
tried alone, so that one never fails the others.

The first interrupt drains: no new jobs, and the programs that run may end within --grace. The second
leaves at once. Upkeep runs along, so that one such process is all a small system needs.`,
		Example: "  sluice work mail --slots 4 -- ./send-mail\n  sluice work resize -- sh -c 'convert - -resize 200x200 out/$SLUICE_JOB_ID.png'\n  sluice work mail --batch 100 --silence 30s -- python3 mails.py",
		Args:    arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() != 1 {
				return usagef("the program comes after «--»; write: sluice work QUEUE -- COMMAND")
			}
			if f.slots < 1 {
				return usagef("--slots %d is not at least 1", f.slots)
			}
			if f.batch < 0 || f.batch > maxBatch {
				return usagef("--batch %d is not between 1 and %d", f.batch, maxBatch)
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
	a.metrics.addTo(flags)
	flags.IntVar(&f.slots, "slots", 4, "how many programs run at once")
	flags.Var(newDuration(&f.poll, time.Second), "poll", "how often to look when nobody says that there are jobs")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "how long programs may go on after the first interrupt")
	flags.IntVar(&f.batch, "batch", 0, "give the program so many jobs at a time, as lines of JSON")
	flags.Var(newDuration(&f.silence, 0), "silence", "end a program that writes nothing for so long; its attempt failed")
	flags.StringSliceVar(&f.pass, "pass", nil, "give the program a variable that is Sluice's own, such as SLUICE_DB; it gets none of them otherwise")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave recovering, expiring and pruning to others")
	flags.BoolVar(&f.drain, "until-empty", false, "end when no job of the queues is unfinished; exit code 6 if jobs died")
	return command
}

func (a *app) work(ctx context.Context, queues, program []string, f workFlags) error {
	if _, err := exec.LookPath(program[0]); err != nil {
		return usagef("%w", err)
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	defer a.programs.dismiss()
	if err := checkRunners(ctx, store, queues); err != nil {
		return err
	}
	logger, log := a.logger(), a.events()
	defer log.Flush()
	w := worker.New(store, worker.Options{
		Slots: f.slots * max(1, f.batch), Poll: f.poll, Drain: f.grace, PayloadChecker: schema.New(), Logger: logger, LogLimit: a.log.limit, Scrub: a.log.clean(),
	})
	one := runner{
		program: program, running: &a.programs, settings: settingsOf(store), log: log, said: event.NewLog(logger, "", -1), pass: f.pass, clean: a.log.clean(),
		silence: f.silence,
	}
	handler := one.run
	if f.batch > 0 {
		handler = (&batches{runner: one, size: f.batch, programs: f.slots}).run
	}
	for _, queue := range queues {
		worker.Handle(w, sluice.QueueOf[json.RawMessage](queue), handler, worker.QueueOptions{})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	if !f.noUpkeep {
		tend := upkeep.Options{PayloadChecker: schema.New(), Logger: logger, LogLimit: a.log.limit, Scrub: a.log.clean()}
		helpers.Go(func() { _ = upkeep.New(store, tend).Run(ctx) }) // it returns nil
	}
	var emptied atomic.Bool
	var before int
	if f.drain {
		if before, err = deadIn(ctx, store, queues); err != nil {
			return err
		}
		helpers.Go(func() {
			stopWhenEmpty(ctx, store, queues, func() {
				emptied.Store(true)
				stop()
			})
		})
	}
	err = w.Run(ctx)
	if emptied.Load() && (err == nil || errors.Is(err, context.Canceled)) { // cancelled: it was seen before the worker had begun
		return died(context.WithoutCancel(ctx), store, queues, before)
	}
	return err
}

// deadIn counts the dead letters of queues.
func deadIn(ctx context.Context, store sluice.Store, queues []string) (dead int, err error) {
	for _, queue := range queues {
		depth, err := store.Depth(ctx, queue)
		if err != nil {
			return 0, err
		}
		dead += depth.Dead
	}
	return dead, nil
}

// died is an error if there are more dead letters than before: whoever waits for the end must not take them for done.
func died(ctx context.Context, store sluice.Store, queues []string, before int) error {
	dead, err := deadIn(ctx, store, queues)
	if err != nil || dead <= before {
		return err
	}
	return codedError{fmt.Errorf("%d jobs died", dead-before), exitPartly, "look at them with «sluice dead ls " + queues[0] + "»"}
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

// checkRunners refuses queues whose jobs an engine runs. The store refuses each claim too: settings may change.
func checkRunners(ctx context.Context, store sluice.Store, queues []string) error {
	stored, err := store.Queues(ctx, sluice.QueueFilter{Names: queues})
	if err != nil {
		return err
	}
	for _, q := range stored {
		if err := (sluice.ClaimRequest{Queue: q.Name}).CheckRunner(q.Settings.Engine); err != nil {
			return err
		}
	}
	return nil
}
