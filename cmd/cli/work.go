package cli

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// maxBatch is the most jobs that a program gets; all are held while it runs.
const maxBatch = 1000

// workFlags are the options of `work`.
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
		Long: `Runs the program once for each job, with the payload on standard input, and SLUICE_JOB_ID,
SLUICE_QUEUE, SLUICE_TENANT, SLUICE_KEY and SLUICE_ATTEMPT in the environment. Output is the job's
result; standard error goes to the log, line by line. The exit code decides:

  0      done
  65     dead at once: the job will never succeed
  75     handed back for later; no attempt counts
  other  failed: retried after its backoff, or dead after its last attempt

A failing program may print {"error": "…"} with "permanent": true or "retry_after": "10m", or
{"release": "30s"}. This overrides the exit code.

With --batch the program reads many jobs: one JSON object per line (id, queue, tenant, key,
attempt, labels, checkpoint, payload). For each job it prints a line, in any order:

  {"id": "…", "result": …}                              done; null is no result
  {"id": "…", "error": "…"}                             failed
  {"id": "…", "error": "…", "retry_after": "10m"}       failed; retry then
  {"id": "…", "error": "…", "permanent": true}          dead at once
  {"id": "…", "release": "30s"}                         handed back; no attempt counts
  {"id": "…", "checkpoint": …}                          state, for the next attempt
  {"id": "…", "progress": 0.4, "message": "page 3"}     how far it is; "sluice job" shows it
  {"heartbeat": true}                                   sign of life, for --silence

Each line settles its job. Jobs left without an answer are tried alone.

The first interrupt drains: no new jobs, and programs may end within --grace. The second exits at
once. Upkeep runs along: one process is enough for a small system.`,
		Example: "  sluice work mail --slots 4 -- ./send-mail\n  sluice work resize -- sh -c 'convert - -resize 200x200 out/$SLUICE_JOB_ID.png'\n  sluice work mail --batch 100 --silence 30s -- python3 mails.py",
		Args:    arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() != 1 {
				return usagef("the program comes after `--`; write: sluice work QUEUE -- COMMAND")
			}
			if f.slots < 1 {
				return usagef("--slots %d is not at least 1", f.slots)
			}
			if f.batch < 0 || f.batch > maxBatch {
				return usagef("--batch %d is not between 1 and %d", f.batch, maxBatch)
			}
			queues := strings.Split(args[0], ",")
			for i, queue := range queues {
				if err := sluice.CheckOwnQueueName(queue); err != nil {
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
	a.addVersionTo(flags)
	flags.IntVar(&f.slots, "slots", 4, "programs at once")
	flags.Var(newDuration(&f.poll, time.Second), "poll", "how often to look for jobs without notification")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "time for programs after the first interrupt")
	flags.IntVar(&f.batch, "batch", 0, "jobs per program, as lines of JSON")
	flags.Var(newDuration(&f.silence, 0), "silence", "end a program that writes nothing for this long; its attempt fails")
	flags.StringSliceVar(&f.pass, "pass", nil, "pass a SLUICE_ variable, such as SLUICE_DB; others stay hidden")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave recovering, expiring and pruning to others")
	flags.BoolVar(&f.drain, "until-empty", false, "end when the queues have no unfinished jobs but held ones; exit code 6 if jobs died or are held, 3 if a queue does not exist")
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
		Version: a.version, Slots: f.slots * max(1, f.batch), Poll: f.poll, Drain: f.grace, PayloadChecker: schema.New(), Logger: logger, LogLimit: a.log.limit, Scrub: a.log.clean(),
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
	if !f.noUpkeep && !remote.IsAddress(a.db) { // a server does it
		tend := upkeep.Options{Version: a.version, PayloadChecker: schema.New(), Logger: logger, LogLimit: a.log.limit, Scrub: a.log.clean()}
		helpers.Go(func() { _ = upkeep.New(store, tend).Run(ctx) }) // nil, or somebody stopped it
	}
	emptied := make(chan int, 1) // the jobs that stay held
	var before int
	if f.drain {
		if before, err = deadIn(ctx, store, queues); err != nil {
			return err
		}
		helpers.Go(func() {
			if held, empty := waitUntilEmpty(ctx, store, queues); empty {
				emptied <- held
				stop()
			}
		})
	}
	err = w.Run(ctx)
	select {
	case held := <-emptied:
		if err == nil || errors.Is(err, context.Canceled) { // cancelled: empty before the worker began
			return leftOver(context.WithoutCancel(ctx), store, a.client(store), queues, before, held)
		}
	default:
	}
	return err
}

// checkRunners refuses queues whose jobs an engine runs. The store also refuses each claim: settings may change.
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
