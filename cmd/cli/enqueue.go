package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
)

// enqueueFlags are the options of `enqueue`.
type enqueueFlags struct {
	options            sluice.EnqueueOptions
	id, dueAt, expires string
	delay, window      string
	timeout            string
	scope, onDuplicate string
	labels, after      []string
	afterFailure       string
	file, resume       string
	skip, lines        int
	batch              string
	wait               time.Duration
}

func (a *app) enqueueCommand() *cobra.Command {
	var f enqueueFlags
	command := &cobra.Command{
		Use:   "enqueue QUEUE [PAYLOAD]",
		Short: "Enqueue a job, or a file of jobs",
		Long: fmt.Sprintf(`Enqueues one job. The payload is JSON: the argument itself, @FILE, or - for standard input.

With --file, every line is a JSON object with a payload and any of these options:

  %s

Refused lines are reported by number, the others stored; the exit code is then 6.

Each run of a file has an id. Jobs without an id get the run's, ending with their line number in
hexadecimal. To continue an interrupted run, give --resume and the same file (or standard input).
Stored lines are found by id, and never stored twice. A changed file is refused, and so is a run
older than the time for which the queue keeps finished jobs. --skip avoids looking for stored lines,
and says that they are stored; interrupted runs print how many.`, jobline.FieldNames()),
		Example: `  sluice enqueue mail '{"to":"ada"}' --tenant acme --delay 10m
  generate-report | sluice enqueue reports -
  sluice enqueue reports @report.json --key report-7 --on-duplicate replace
  sluice enqueue thumbnails '{"image":7}' --wait 30s
  sluice enqueue ledger '{"cents":100}' --order-key account-7
  sluice enqueue thumbnails '{"image":8}' --batch 01a1fb72-1dea-7abc-8fc6-99e4817522bb
  sluice enqueue payments --file wave.jsonl
  sluice enqueue payments --file wave.jsonl --resume 01a205c4-54b2-70f5-bda8-4c2000000000 --skip 1`,
		Args: arguments(0, 2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.check(command); err != nil {
				return err
			}
			ctx := a.inTrace(command.Context())
			if f.file != "" {
				return a.enqueueFile(ctx, args, f)
			}
			return a.enqueueOne(ctx, args, f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.options.Tenant, "tenant", "", "tenant of the job")
	flags.StringVar(&f.options.Key, "key", "", "idempotency key, unique within the queue")
	flags.StringVar(&f.scope, "key-scope", "", "how long the key blocks others: unfinished, window, forever (default: unfinished)")
	flags.StringVar(&f.window, "key-window", "", "length of the key scope window, such as 1h or 7d; with debounce the longest wait")
	flags.StringVar(&f.onDuplicate, "on-duplicate", "", "for a duplicate: keep (the first), replace, coalesce, debounce (default: keep)")
	flags.StringVar(&f.dueAt, "at", "", "earliest start, such as 2026-12-01T16:00:00Z (default: now)")
	flags.StringVar(&f.delay, "delay", "", "earliest start from now, such as 90m or 2d")
	flags.IntVar(&f.options.Priority, "priority", 0, "from 1 (first) to 10 (last) (default 5)")
	flags.StringVar(&f.expires, "expires-at", "", "cancel the job if it still waits then, such as 2026-12-01T18:00:00Z (default: never)")
	flags.StringArrayVar(&f.labels, "label", nil, "label to find the job by, as NAME=VALUE; repeatable")
	flags.IntVar(&f.options.MaxAttempts, "max-attempts", 0, "the failed attempt that buries the job (default: the queue's setting)")
	flags.StringVar(&f.timeout, "timeout", "", "most time of an attempt or run, such as 90s or 2h (default: the handler's or the queue's)")
	flags.StringVar(&f.options.LimitKey, "limit-key", "", "value, such as a host, by which limits with per=key bound the job")
	flags.IntVar(&f.options.Cost, "cost", 0, "units, such as tokens, that the job takes of limits with units=cost (default: 1)")
	flags.StringVar(&f.options.OrderKey, "order-key", "", "jobs of the queue with the same key run one at a time, in enqueue order")
	flags.StringArrayVar(&f.after, "after", nil, "id of a job that must complete first, or ID=RULE with a failure rule of its own; repeatable")
	flags.StringVar(&f.afterFailure, "after-failure", "", "if such a job dies or is cancelled: cancel, run (it counts as done), wait (until requeued and completed) (default: cancel)")
	flags.StringVar(&f.options.Hold, "hold", "", "reason to hold the job until \"sluice release\" (default: nobody holds it)")
	flags.StringVar(&f.batch, "batch", "", "id of the open batch to add the job to, from \"sluice batches open\" (default: none); with --file: of lines that name none")
	flags.StringVar(&f.id, "id", "", "job id (default: new); the same id stores a job once")
	flags.Var(duration{&f.wait}, "wait", "wait so long for the end of the job, and print its result instead of its id")
	flags.StringVar(&f.file, "file", "", "file of jobs, one JSON object per line; - for standard input")
	flags.StringVar(&f.resume, "resume", "", "with --file: id of an interrupted run to continue")
	flags.IntVar(&f.skip, "skip", 0, "with --file: leading lines to skip, already stored")
	flags.IntVar(&f.lines, "lines", 1000, "with --file: lines per transaction")
	return command
}

// check refuses flags that would have no effect, and values out of range.
func (f enqueueFlags) check(command *cobra.Command) error {
	ofFile := []string{"resume", "skip", "lines"}
	ofOne := []string{"tenant", "key", "key-scope", "key-window", "on-duplicate", "at", "delay", "priority", "expires-at", "label", "max-attempts", "timeout", "id", "order-key", "limit-key", "cost", "after", "after-failure", "hold", "wait"}
	unfit, why := ofFile, "only goes with --file"
	if f.file != "" {
		unfit, why = ofOne, "is of one job; with --file, write it on the lines"
	}
	for _, name := range unfit {
		if command.Flags().Changed(name) {
			return usagef("--%s %s", name, why)
		}
	}
	switch {
	case f.lines < 1 || f.lines > 10_000:
		return usagef("--lines %d must be from 1 to 10000", f.lines)
	case f.skip < 0:
		return usagef("--skip %d is negative", f.skip)
	case command.Flags().Changed("priority") && f.options.Priority == 0:
		return usagef("--priority 0 must be from 1 (first) to 10 (last)")
	case command.Flags().Changed("max-attempts") && f.options.MaxAttempts == 0:
		return usagef("--max-attempts 0 is less than 1")
	case command.Flags().Changed("cost") && f.options.Cost == 0:
		return usagef("--cost 0 is less than 1")
	}
	if timeout, err := jobline.ParseDuration(f.timeout); err == nil && timeout == 0 {
		return usagef("--timeout %s must be from 1ms to 30d", f.timeout)
	}
	return nil
}

// parse turns the flags into options.
func (f enqueueFlags) parse() (sluice.EnqueueOptions, error) {
	out := f.options
	out.KeyScope, out.OnDuplicate = sluice.KeyScope(f.scope), sluice.OnDuplicate(f.onDuplicate)
	out.AfterFailure = sluice.AfterFailure(f.afterFailure)
	var err error
	for _, text := range f.after {
		name, rule, own := strings.Cut(text, "=")
		id, err := parseID(name)
		if err != nil {
			return out, codedError{usagef("--after: %w", err), exitUsage, "name a job by the id that `sluice enqueue` printed; `sluice jobs` lists all"}
		}
		out.After = append(out.After, id)
		if own && out.AfterFailures == nil {
			out.AfterFailures = make(map[sluice.ID]sluice.AfterFailure)
		}
		if own {
			out.AfterFailures[id] = sluice.AfterFailure(rule)
		}
	}
	if out.Batch, err = f.batchID(); err != nil {
		return out, err
	}
	if f.id != "" {
		if out.ID, err = parseID(f.id); err != nil {
			return out, usagef("--id: %w", err)
		}
	}
	for _, at := range []struct {
		flag, text string
		into       *time.Time
	}{{"--at", f.dueAt, &out.DueAt}, {"--expires-at", f.expires, &out.ExpiresAt}} {
		if *at.into, err = parseTime(at.flag, at.text); err != nil {
			return out, err
		}
	}
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--delay", f.delay, &out.Delay}, {"--key-window", f.window, &out.KeyWindow}, {"--timeout", f.timeout, &out.Timeout}} {
		if d.text == "" {
			continue
		}
		if *d.into, err = jobline.ParseDuration(d.text); err != nil {
			return out, usagef("%s %q: %w", d.flag, d.text, err)
		}
	}
	out.Labels, err = parseLabels(f.labels)
	return out, err
}

// batchID returns the id of --batch, or none.
func (f enqueueFlags) batchID() (sluice.ID, error) {
	if f.batch == "" {
		return sluice.ID{}, nil
	}
	id, err := parseID(f.batch)
	if err != nil {
		return id, codedError{usagef("--batch: %w", err), exitUsage, "give the id that `sluice batches open` printed; `sluice batches ls` lists all"}
	}
	return id, nil
}

// refused says what to do about an error of an enqueue that concerns other objects than the queue.
func (f enqueueFlags) refused(err error) error {
	switch {
	case f.batch != "" && errors.Is(err, sluice.ErrNotAllowed):
		return codedError{err, exitRefused, "open a batch with `sluice batches open`, and give its id to --batch"}
	case f.batch != "" && errors.Is(err, sluice.ErrNotFound) && strings.Contains(err.Error(), "batch "+f.batch):
		return codedError{err, exitNotFound, "`sluice batches ls` lists all batches, `sluice batches open` opens one"}
	case isPlainText(err):
		return codedError{err, exitUsage, `write JSON; a text has quotes of its own: '"hello"'`}
	case len(f.after) > 0 && errors.Is(err, sluice.ErrNotFound):
		return codedError{err, exitNotFound, "enqueue the jobs of --after first; `sluice jobs` lists all"}
	}
	return err
}

// isPlainText reports whether an error is about a payload that is not JSON.
func isPlainText(err error) bool {
	var invalid *sluice.InvalidError
	return errors.As(err, &invalid) && invalid.Field == "payload" && strings.Contains(invalid.Rule, "is not valid JSON")
}

func (a *app) enqueueOne(ctx context.Context, args []string, f enqueueFlags) error {
	if len(args) < 2 {
		return usagef("a queue and a payload are needed, or --file; write: %s", "sluice enqueue QUEUE PAYLOAD")
	}
	options, err := f.parse()
	if err != nil {
		return err
	}
	payload, err := a.payload(args[1])
	if err != nil {
		return err
	}
	if f.wait > 0 {
		return f.refused(a.enqueueAndWait(ctx, sluice.NewJob{Queue: args[0], Payload: payload, EnqueueOptions: options}, f.wait))
	}
	job := sluice.NewJob{Queue: args[0], Payload: payload, EnqueueOptions: options}
	return a.withClient(ctx, func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
		receipt, err := client.Enqueue(ctx, job)
		if err != nil {
			return f.refused(err)
		}
		if other := otherJob(ctx, client, job, receipt); other != "" {
			a.note("duplicate: the id is taken by another job, %s; this one is not stored: enqueue it without --id, or with a new one", other)
		} else if receipt.Duplicate {
			a.note("duplicate: the job that is there has this id")
		}
		return a.printOne(receipt, func() error {
			if !receipt.Replaced.IsZero() {
				a.note("replaced %s", receipt.Replaced)
			}
			_, err := fmt.Fprintln(a.stdout, receipt.ID)
			return err
		})
	})
}

// otherJob says in what the stored job differs that has the id of a new one. Empty: in nothing, or the caller cannot read it.
// What edits and other enqueues change says nothing.
func otherJob(ctx context.Context, client *sluice.Client, job sluice.NewJob, receipt sluice.Receipt) string {
	if !receipt.Duplicate || receipt.ID != job.ID {
		return ""
	}
	stored, err := client.Job(ctx, receipt.ID)
	switch {
	case err != nil:
		return ""
	case stored.Queue != job.Queue:
		return "of queue " + stored.Queue
	case stored.Key != job.Key:
		return "with another key"
	case len(stored.Payload) > 0 && job.OnDuplicate != sluice.Coalesce && job.OnDuplicate != sluice.Debounce && compact(stored.Payload) != compact(job.Payload) && !edited(ctx, client, job.ID):
		return "with another payload"
	}
	return ""
}

// enqueueAndWait enqueues a job and waits for its end.
func (a *app) enqueueAndWait(ctx context.Context, job sluice.NewJob, most time.Duration) error {
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	receipt, err := a.client(store).Enqueue(ctx, job)
	if err != nil {
		return err
	}
	a.note("job %s", receipt.ID)
	return a.waitFor(ctx, store, receipt.ID, most)
}

// payload reads a payload from the argument, a file or standard input.
func (a *app) payload(argument string) ([]byte, error) {
	switch {
	case argument == "-":
		return io.ReadAll(a.stdin)
	case strings.HasPrefix(argument, "@"):
		text, err := os.ReadFile(argument[1:])
		if err != nil {
			return nil, usagef("read the payload: %w", err)
		}
		return text, nil
	}
	return []byte(argument), nil
}
